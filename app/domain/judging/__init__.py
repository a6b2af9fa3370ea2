"""How judges are asked and how their replies are read."""
