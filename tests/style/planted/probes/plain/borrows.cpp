#include <string>

namespace assay {

std::vector<std::string> borrowed() { return {}; }  // std::map in a comment

}  // namespace assay
