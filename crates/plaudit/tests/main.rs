//! All integration tests of the engine, in one binary, because every link costs seconds.

mod golden;
