// built_in: the profiles that come with assay and the probes of this build, for tests.
#pragma once

#include <algorithm>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "orchestrator/plan/plan.h"
#include "orchestrator/plan/programs.h"
#include "tests/unit/paths.h"

namespace assay {

/// A built-in profile, read once; a fault of it throws its text with its coordinates.
inline const plan::Profile& built_in(const std::string& name) {
  static std::map<std::string, plan::Profile> known;
  const auto entry = known.find(name);
  if (entry != known.end()) return entry->second;
  auto profile = plan::read_profile(plan::embedded_profile(name).value(), name, plan::embedded_profile);
  if (!profile) throw std::runtime_error(profile.error().text());
  return known.emplace(name, std::move(*profile)).first->second;
}

/// Names of all built-in profiles.
inline std::vector<std::string> profile_names() {
  std::vector<std::string> all;
  for (const auto& [name, text] : plan::embedded_profiles()) all.push_back(name);
  return all;
}

/// The probes of this build.
inline const std::vector<plan::Program>& built_programs() {
  static const auto kPrograms = plan::find_programs(probe_file(""));
  if (!kPrograms) throw std::runtime_error(kPrograms.error().text());
  return *kPrograms;
}

/// A profile's name as part of a test's.
inline std::string name_of_test(const testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::ranges::replace(name, '-', '_');
  return name;
}

}  // namespace assay
