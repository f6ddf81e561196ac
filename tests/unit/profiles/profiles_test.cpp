// The profiles that come with assay: honest about their sources, and plannable with the probes of this build.
#include <algorithm>
#include <sstream>

#include <gtest/gtest.h>

#include "orchestrator/simulate/simulate.h"
#include "probes/core/units.h"
#include "tests/unit/profiles/built_in.h"

namespace assay {
namespace {

site::Site two_nodes() {
  const auto site = site::read_site(R"({"schema": "assay.site/1", "name": "s", "nodes": [
      {"name": "n1", "launcher": "local"}, {"name": "n2", "launcher": "ssh", "address": "n2.example", "host_key": "ssh-ed25519 AAAA"}]})",
                                    "s.json");
  if (!site) throw std::runtime_error(site.error().text());
  return *site;
}

plan::Plan planned(const std::string& name) {
  const auto& profile = built_in(name);
  site::Site site = two_nodes();
  if (name == "tenants-apart") {  // it needs the consent of a site that has some
    site = simulate::simulated_site(simulate::shape_for(profile, {.nodes = 4}));
    simulate::tell_parts(profile, site);
  }
  auto plan = plan::make_plan(profile, site, built_programs(), {});
  if (!plan) throw std::runtime_error(plan.error().text());
  return *plan;
}

/// Requirement ids of `profile` for which `wrong` holds.
std::string ids_where(const plan::Profile& profile, const std::function<bool(const plan::Requirement&)>& wrong) {
  std::string ids;
  for (const auto& requirement : profile.requirements) ids += wrong(requirement) ? requirement.id + " " : "";
  return ids;
}

/// Whether `list` ("1GiB,8GiB") has the size that `at` names.
bool has_size(const std::string& list, const Value& at) {
  std::istringstream parts(list);
  for (std::string part; std::getline(parts, part, ',');) {
    const auto size = parse_bytes(part);
    if (size && Value(std::int64_t(size->count)) == at) return true;
  }
  return false;
}

class BuiltIn : public testing::TestWithParam<std::string> {};

}  // namespace

TEST_P(BuiltIn, every_limit_tells_document_figure_and_method) {
  EXPECT_EQ(ids_where(built_in(GetParam()),
                      [](const plan::Requirement& requirement) {
                        const auto& source = requirement.source;
                        return source.document.empty() || source.figure.empty() || source.method.empty();
                      }),
            "");
}

TEST_P(BuiltIn, every_peak_tells_document_figure_and_method) {
  for (const auto& [name, peak] : built_in(GetParam()).peaks) {
    EXPECT_FALSE(peak.source.document.empty() || peak.source.figure.empty() || peak.source.method.empty()) << name;
  }
}

TEST_P(BuiltIn, nothing_required_rests_on_an_unsourced_figure) {
  const auto& profile = built_in(GetParam());
  EXPECT_EQ(ids_where(profile,
                      [&](const plan::Requirement& requirement) {
                        const bool by_peak = requirement.limit.reference == plan::Reference::peak &&
                                             profile.peaks.at(requirement.limit.name).source.status == "unsourced";
                        return requirement.required && (requirement.source.status == "unsourced" || by_peak);
                      }),
            "");
}

TEST_P(BuiltIn, the_choices_of_this_suite_are_not_passed_off_as_sourced) {
  EXPECT_EQ(ids_where(built_in(GetParam()),
                      [](const plan::Requirement& requirement) {
                        const bool count = requirement.limit.at_most &&
                                           *requirement.limit.at_most == 0;  // none tolerated: the definition itself
                        return requirement.source.document.starts_with("assay,") &&
                               requirement.source.status == "sourced" && !count;
                      }),
            "");
}

TEST_P(BuiltIn, it_plans_on_two_nodes_with_the_probes_of_this_build) {
  const auto plan = planned(GetParam());
  EXPECT_GE(plan.coverage.size(), built_in(GetParam()).requirements.size());
}

TEST_P(BuiltIn, coordinates_are_among_the_sizes_asked_for) {
  EXPECT_EQ(ids_where(built_in(GetParam()),
                      [](const plan::Requirement& requirement) {
                        if (!requirement.at.contains("size")) return false;
                        const auto sizes = requirement.parameters.find("sizes");
                        return requirement.at.size() != 1 || sizes == requirement.parameters.end() ||
                               !std::holds_alternative<std::string>(sizes->second) ||
                               !has_size(std::get<std::string>(sizes->second), requirement.at.at("size"));
                      }),
            "");
}

INSTANTIATE_TEST_SUITE_P(profiles, BuiltIn, testing::ValuesIn(profile_names()), name_of_test);

namespace {

const std::string kAmdNodes[] = {"amd-mi300x", "amd-mi325x", "amd-mi355x"};

bool is_required_amd_rate(const plan::Requirement& one) {
  return one.required && (one.probe.starts_with("amd_") || one.probe == "rccl_collective") &&
         one.limit.unit.ends_with("/s");
}

bool demands(const plan::Requirement& one, const char* condition) {
  return std::ranges::find(one.conditions, condition, &plan::RequiredCondition::name) != one.conditions.end();
}

}  // namespace

TEST(profiles, a_required_rate_of_amd_gpus_is_of_a_document_that_names_the_gpu) {
  for (const std::string& name : kAmdNodes) {
    EXPECT_EQ(ids_where(built_in(name),
                        [](const plan::Requirement& one) {
                          const std::string source = one.source.document + one.source.method;
                          return is_required_amd_rate(one) && source.find("MI3") == std::string::npos &&
                                 source.find("mi3") == std::string::npos;
                        }),
              "")
        << name;
  }
}

TEST(profiles, a_required_rate_of_one_amd_gpu_is_judged_only_where_it_was_watched_whole_alone_and_well) {
  constexpr const char* kDemanded[] = {"amd_smi",         "compute_partition",        "memory_partition",
                                       "other_processes", "thermal_violations_delta", "ecc_uncorrected_delta"};
  for (const std::string& name : kAmdNodes) {
    EXPECT_EQ(ids_where(built_in(name),
                        [&](const plan::Requirement& one) {
                          return is_required_amd_rate(one) && one.scope == plan::JudgedScope::gpu &&
                                 !std::ranges::all_of(kDemanded, [&](const char* by) { return demands(one, by); });
                        }),
              "")
        << name;
  }
}

TEST(profiles, no_error_of_the_memory_of_amd_gpus_passes_only_where_the_memory_counts_them) {
  for (const std::string name : {"amd-mi300x", "amd-mi325x", "amd-mi355x", "nightly-amd-5m"}) {
    EXPECT_EQ(ids_where(built_in(name),
                        [](const plan::Requirement& one) {
                          return one.probe == "health_amd" && one.metric == "ecc_uncorrected" &&
                                 !demands(one, "ecc_mode");
                        }),
              "")
        << name;
  }
}

TEST(profiles, design_data_without_probes_is_planned_as_missing_by_name) {
  const auto plan = planned("amd-mi300x");
  const auto reason_of = [&](const std::string& requirement) {
    const auto cell = std::ranges::find(plan.coverage, requirement, &plan::Cell::requirement);
    return cell == plan.coverage.end() ? "no cell" : cell->reason;
  };
  EXPECT_EQ(reason_of("transferbench.a2a.average"), "the probe transferbench is not part of this build");
}

TEST(profiles, a_node_without_probes_for_its_accelerators_cannot_be_accepted_by_what_is_left) {
  const auto plan = planned("ascend-910c");
  EXPECT_TRUE(std::ranges::any_of(plan.coverage, [&](const plan::Cell& cell) {
    return cell.step.empty() && plan.requirement(cell.requirement)->required &&
           plan.requirement(cell.requirement)->scope == plan::JudgedScope::gpu;
  }));
}

}  // namespace assay
