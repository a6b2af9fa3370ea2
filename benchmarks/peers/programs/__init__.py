"""What runs in the peers' own environment: ``PROGRAM CALLS OUTPUT BASE_URL IN_FLIGHT``, each as its makers describe it.

``CALLS`` is a file of JSON Lines with a ``prompt`` each, ``OUTPUT`` an empty directory for whatever the program keeps.
"""
