"""The fast decoder: weights kept in their codes, the same bits for one row and for many."""
