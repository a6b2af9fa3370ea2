"""The command line for a service that runs anywhere: it is given the contract's JSON and draws it."""
