"""What pages are made of: the frame with its style sheet, drawings, and words; knows nothing of what they show."""
