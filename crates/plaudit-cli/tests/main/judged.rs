//! Do judged recipes do what they say?
