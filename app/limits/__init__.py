"""How fast and how many calls may go out: the rate limiter shared by all workers, and places in one process."""
