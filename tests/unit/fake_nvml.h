// fake_nvml: a made-up node for one test: a link to the fake NVML beside the state that it replays.
#pragma once

#include <filesystem>
#include <string>

#include "tests/unit/fake_tree.h"
#include "tests/unit/paths.h"

namespace assay {

/// The library itself; a file of its states.
inline std::string fake_nvml() { return build_file("tests/fakes/nvml/libnvidia-ml.so.1"); }
inline std::string nvml_state(const std::string& name) { return source_file("tests/fakes/nvml/" + name); }

/// A directory with libnvidia-ml.so.1 and the state of a scenario under tests/fakes/nvml.
class FakeNvml {
 public:
  /// `scenario` is the name of a file there, without ".json".
  /// `more` is JSON that is merged over it, such as {"gpu": {"lists_caller": true}}.
  explicit FakeNvml(const std::string& scenario, const std::string& more = "{}") {
    tree_.file("more.json", R"({"base": ")" + nvml_state(scenario + ".json") + R"("})");
    tree_.file("state.json", R"({"base": "more.json")" + (more == "{}" ? "}" : ", " + more.substr(1)));
    std::filesystem::create_symlink(fake_nvml(), library());
  }
  /// The path to open.
  [[nodiscard]] std::string library() const { return tree_.path("libnvidia-ml.so.1"); }

 private:
  FakeTree tree_;
};

/// UUID of the GPU that the scenarios number `index`.
inline std::string uuid_of(int index) {
  const std::string digit = std::to_string(index);
  return "GPU-0000000" + digit + "-5afe-4000-8000-00000000000" + digit;
}

}  // namespace assay
