// What the one tells where it stands beside somebody: a room above its ceiling, by a comment and a text.
const char* const kMeaning = "what it tells where it is held against nothing";
