"""Where torch keeps the insides of `func`, for code that reaches for them there. Nothing in the package imports
this."""
