"""Where requests to URLs that users gave may go: one guard for webhooks and for connections."""
