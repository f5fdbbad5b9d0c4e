"""Export of stored episodes to formats that training code reads."""
