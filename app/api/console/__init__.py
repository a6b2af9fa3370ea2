"""The console: pages in the browser, rendered here, over the same use cases as the API."""
