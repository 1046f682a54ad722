//! What does a run do when the process or its surroundings fail?
