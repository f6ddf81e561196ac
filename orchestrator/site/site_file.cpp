// site_file: fills in what only this machine can tell, then reads.
#include "orchestrator/site/site_file.h"

#include <cstdlib>
#include <filesystem>
#include <optional>

#include <pwd.h>
#include <unistd.h>

#include <fmt/format.h>

#include "probes/core/json_io.h"
#include "probes/core/secret_file.h"

namespace assay::site {
namespace {

namespace fs = std::filesystem;

/// Gives each node without a directory that of its user; what is not a site is left for read_site to refuse.
void fill_in_directories(nlohmann::json& document) {
  const auto nodes = document.find("nodes");
  if (nodes == document.end() || !nodes->is_array()) return;
  for (auto& node : *nodes) {
    if (!node.is_object() || node.contains("directory")) continue;
    const auto launcher = node.find("launcher");
    // In a pod it is the directory that `assay site manifest` mounts.
    if (launcher != node.end() && *launcher == "kubernetes") continue;
    const auto user = node.find("user");
    node["directory"] = default_directory(user != node.end() && user->is_string() ? user->get<std::string>() : "");
  }
}

/// Makes `file` absolute; an error when it does not exist.
std::optional<InputError> resolve(std::string& file, const fs::path& folder, const std::string& where) {
  if (file.empty()) return std::nullopt;
  if (file.starts_with("~/")) file.replace(0, 1, home_directory());
  const fs::path path = (folder / file).lexically_normal();
  std::error_code unknown;  // a file that cannot be looked at is for ssh to refuse
  if (fs::status(path, unknown).type() == fs::file_type::not_found)
    return InputError{where, fmt::format("no such file: {}", path.string()),
                      "a relative path is relative to the site file, and ~ is $HOME"};
  file = path.string();
  return std::nullopt;
}

}  // namespace

std::string home_directory() {
  const char* const home = std::getenv("HOME");
  const passwd* const user = home == nullptr ? ::getpwuid(::geteuid()) : nullptr;
  return home != nullptr ? home : user != nullptr ? user->pw_dir : "";
}

std::string default_directory(const std::string& user) {
  return fmt::format("{}-{}", kDefaultDirectory, user.empty() ? std::to_string(::geteuid()) : user);
}

std::expected<Site, InputError> read_site_file(const std::string& path) {
  const auto text = read_deciding_file(path);
  if (!text) return std::unexpected(text.error());
  auto document = parse_json(*text, path);
  if (!document) return std::unexpected(document.error());
  if (document->is_object()) fill_in_directories(*document);
  auto site = read_site(document->dump(-1, ' ', false, nlohmann::json::error_handler_t::replace), path);
  if (!site) return site;
  const fs::path folder = fs::absolute(path).parent_path();
  if (auto problem = resolve(site->known_hosts, folder, path + ": known_hosts")) return std::unexpected(*problem);
  for (std::size_t i = 0; i < site->nodes.size(); ++i) {
    Node& node = site->nodes[i];
    const std::string here = fmt::format("{}: nodes[{}]", path, i);
    if (auto problem = resolve(node.identity_file, folder, here + ".identity_file")) return std::unexpected(*problem);
    if (!node.jump) continue;
    if (auto problem = resolve(node.jump->identity_file, folder, here + ".jump.identity_file"))
      return std::unexpected(*problem);
  }
  const auto find_secret = [&](std::string& credentials, const char* list, std::size_t i) -> std::optional<InputError> {
    if (credentials.empty()) return std::nullopt;
    credentials = (folder / credentials).lexically_normal().string();
    auto secret = read_secret_file(credentials);
    if (secret) return std::nullopt;
    return InputError{fmt::format("{}: {}[{}].credentials", path, list, i),
                      fmt::format("{} {}", secret.error().where, secret.error().what), secret.error().hint};
  };
  for (std::size_t i = 0; i < site->meters.size(); ++i)
    if (auto problem = find_secret(site->meters[i].credentials, "meters", i)) return std::unexpected(*problem);
  for (std::size_t i = 0; i < site->switches.size(); ++i)
    if (auto problem = find_secret(site->switches[i].device.credentials, "switches", i))
      return std::unexpected(*problem);
  return site;
}

}  // namespace assay::site
