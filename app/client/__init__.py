"""A client of the service's HTTP interface, for the command line. It knows the contract and nothing of the service's inside."""
