// A room far below its ceiling, which has to be lowered.
