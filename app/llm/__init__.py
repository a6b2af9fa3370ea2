"""Model providers: connections, adapters over the official SDKs, their errors and their prices."""
