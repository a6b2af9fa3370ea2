"""What operators can measure: counters of each process, and the board on which processes show them."""
