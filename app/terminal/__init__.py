"""The command line's commands for whoever runs the service."""
