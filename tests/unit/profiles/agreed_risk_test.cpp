// What the built-in soak promises of the time between two interruptions, for parties that agreed on their risks.
#include <cmath>

#include <gtest/gtest.h>

#include "orchestrator/plan/acceptance.h"
#include "tests/unit/fixture.h"
#include "tests/unit/profiles/built_in.h"

namespace assay::profiles_test {

TEST(agreed_risk, hours_without_interruption_bound_the_time_between_two) {
  const auto soak = plan::profile_named("soak-host");
  ASSERT_TRUE(soak) << soak.error().text();
  const auto agreed = plan::read_agreed_risk("beyond=4,vendor=5,short=2,buyer=5", "--risk");
  ASSERT_TRUE(agreed) << agreed.error().text();
  const auto plan = plan::make_plan(*soak, fixture::site(8), built_programs(), {.agreed_risk = *agreed});
  ASSERT_TRUE(plan) << plan.error().text();
  const plan::RiskReached risk = plan::reached_risk(*plan, *plan->agreed_risk);
  ASSERT_EQ(risk.windows.size(), 1U);
  const plan::StabilityWindow& window = risk.windows.front();
  EXPECT_EQ(window.nodes, 8U);
  EXPECT_EQ(window.hours, 12);
  EXPECT_EQ(window.tolerated, 0);
  EXPECT_NEAR(window.refused_mtbf_h, 8 * 12 / -std::log(0.05), 1e-6);  // none in 96 h of load
  EXPECT_NEAR(window.accepted_mtbf_h, 8 * 12 / -std::log(0.95), 1e-3);
  EXPECT_EQ(plan::risk_text(*plan).find("all rates"), std::string::npos);  // it has none
}

}  // namespace assay::profiles_test
