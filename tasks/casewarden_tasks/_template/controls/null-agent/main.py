"""Does nothing: ends well at once and answers no request."""
