"""What people and machines get to see: listings, explanations, plans and results, in every output format."""
