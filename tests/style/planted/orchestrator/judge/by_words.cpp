// Planted: what style.prose must find, each in its own line. It is never compiled.
#include <string>

constexpr const char* kRefusal = "the node is busy";

bool by_start(const std::string& reason) { return reason.starts_with("Not checked: "); }
bool by_part(const std::string& reason) { return reason.find("was set aside") != std::string::npos; }
bool by_constant(const std::string& reason) { return reason.find(kRefusal) != std::string::npos; }
bool by_whole(const std::string& reason) { return reason == "the node is busy"; }
