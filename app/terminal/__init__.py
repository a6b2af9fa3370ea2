"""How jobs, plans and results look in a terminal. It is given the contract's JSON and draws it."""
