"""Writers of reports: an HTML page for people, CSV, JSON Lines and Parquet for programs."""
