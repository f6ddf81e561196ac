// kept_states: keeps copies in memory and in files, and puts them back; the caller compares the print before it does.
#include "workloads/train/faults/kept_states.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <system_error>

#include <fmt/format.h>

#include "workloads/train/engine/step_math.h"

namespace assay::train {

const KeptState& KeptStates::take(std::int64_t rank, std::int64_t step, const std::vector<std::span<float>>& parts) {
  KeptState& kept = memory_[{rank, step}];
  kept.values.clear();
  for (const auto part : parts) kept.values.insert(kept.values.end(), part.begin(), part.end());
  kept.print = print_of(kept.values);
  return kept;
}

KeptState& KeptStates::room(std::int64_t rank, std::int64_t step, std::size_t count) {
  KeptState& kept = memory_[{rank, step}];
  kept.values.assign(count, 0);
  return kept;
}

KeptState* KeptStates::find(std::int64_t rank, std::int64_t step) {
  const auto found = memory_.find({rank, step});
  return found == memory_.end() ? nullptr : &found->second;
}

std::string KeptStates::path(Tier tier, std::int64_t rank, std::int64_t step) const {
  return fmt::format("{}/rank-{}-step-{}.state", folder(tier), rank, step);
}

void KeptStates::write(Tier tier, std::int64_t rank, std::int64_t step) const {
  const std::vector<float>& values = memory_.at({rank, step}).values;
  const std::string name = path(tier, rank, step), part = name + ".part";
  std::ofstream file(part, std::ios::binary | std::ios::trunc);
  file.write(reinterpret_cast<const char*>(values.data()), static_cast<std::streamsize>(values.size() * sizeof(float)));
  file.close();
  if (!file || std::rename(part.c_str(), name.c_str()) != 0)
    throw std::system_error(errno, std::generic_category(), "write of " + name);
}

std::optional<KeptState> KeptStates::read(Tier tier, std::int64_t rank, std::int64_t step, std::size_t count) const {
  std::ifstream file(path(tier, rank, step), std::ios::binary | std::ios::ate);
  if (!file || file.tellg() != static_cast<std::streamoff>(count * sizeof(float))) return std::nullopt;
  KeptState kept{.print = 0, .values = std::vector<float>(count)};
  file.seekg(0);
  if (!file.read(reinterpret_cast<char*>(kept.values.data()), static_cast<std::streamsize>(count * sizeof(float))))
    return std::nullopt;
  kept.print = print_of(kept.values);
  return kept;
}

void KeptStates::keep_only(std::int64_t rank, std::int64_t step, std::int64_t before) {
  const auto old = [&](std::int64_t one) { return one != step && one != before; };
  std::erase_if(memory_, [&](const auto& one) { return old(one.first.second); });
  for (const std::int64_t one : written_) {
    for (const Tier tier : {Tier::local, Tier::shared}) {
      std::error_code gone;  // a file that is not there is as good
      if (old(one) && has(tier)) std::filesystem::remove(path(tier, rank, one), gone);
    }
  }
  std::erase_if(written_, old);
  written_.push_back(step);
}

void put_back(const std::vector<float>& values, const std::vector<std::span<float>>& parts) {
  std::size_t all = 0;
  for (const auto part : parts) all += part.size();
  if (all != values.size()) throw std::logic_error("a state and the memory that it is to be put into differ in size");
  const float* from = values.data();
  for (const auto part : parts) {
    std::copy_n(from, part.size(), part.begin());
    from += part.size();
  }
}

}  // namespace assay::train
