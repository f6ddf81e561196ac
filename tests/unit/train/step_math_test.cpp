// The element-wise work of a step: gradients against differences, residues against integers.
#include <cmath>
#include <functional>
#include <vector>

#include <gtest/gtest.h>

#include "probes/host/gaussian.h"
#include "workloads/train/engine/step_math.h"

namespace assay::train {
namespace {

using Vector = std::vector<float>;

Vector normal(std::size_t count, std::uint64_t seed) {
  Vector values(count);
  host::fill_gaussian(std::span(values), seed);
  return values;
}

double along(const Vector& a, const Vector& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  return sum;
}

/// `gradient` is that of along(f(x), above): compared with central differences at every place of `x`.
void expect_gradient(const Vector& x, const Vector& above, const Vector& gradient,
                     const std::function<Vector(const Vector&)>& f) {
  constexpr float kStep = 1e-2F;
  for (std::size_t i = 0; i < x.size(); ++i) {
    Vector more = x, less = x;
    more[i] += kStep;
    less[i] -= kStep;
    const double difference = (along(f(more), above) - along(f(less), above)) / (2.0 * static_cast<double>(kStep));
    EXPECT_NEAR(static_cast<double>(gradient[i]), difference, 5e-3) << i;
  }
}

TEST(StepMath, norm_has_the_gradient_of_its_differences) {
  const NormShape shape{.rows = 3, .columns = 8};
  const Vector x = normal(24, 1), gain = normal(8, 2), above = normal(24, 3);
  const auto f = [&](const Vector& at, const Vector& by) {
    Vector out(24), inverse(3);
    norm(shape, at.data(), by.data(), out.data(), inverse.data());
    return out;
  };
  Vector out(24), inverse(3), gradient(24, 0), gain_gradient(8, 0);
  norm(shape, x.data(), gain.data(), out.data(), inverse.data());
  norm_back(shape, x.data(), gain.data(), inverse.data(), above.data(), gradient.data(), gain_gradient.data());
  expect_gradient(x, above, gradient, [&](const Vector& at) { return f(at, gain); });
  expect_gradient(gain, above, gain_gradient, [&](const Vector& by) { return f(x, by); });
}

TEST(StepMath, activate_has_the_gradient_of_its_differences) {
  const Vector both = normal(24, 4), above = normal(12, 5);
  Vector gradient(24);
  activate_back(3, 4, both.data(), above.data(), gradient.data(), false);
  expect_gradient(both, above, gradient, [](const Vector& at) {
    Vector out(12);
    activate(3, 4, at.data(), out.data(), false);
    return out;
  });
}

TEST(StepMath, softmax_sees_no_future_and_has_the_gradient_of_its_differences) {
  const ScoreRows shape{.first = 1, .rows = 2, .columns = 4, .stride = 4};
  const Vector scores = normal(8, 6), above = normal(8, 7);
  const auto f = [&](const Vector& at) {
    Vector probabilities = at;
    softmax(shape, probabilities.data(), 0.5F);
    return probabilities;
  };
  const Vector probabilities = f(scores);
  EXPECT_EQ(probabilities[2], 0);  // row 1 sees two tokens, row 2 three
  EXPECT_EQ(probabilities[3], 0);
  EXPECT_NEAR(static_cast<double>(probabilities[0] + probabilities[1]), 1, 1e-6);
  Vector gradient = above;
  softmax_back(shape, probabilities.data(), gradient.data(), 0.5F);
  expect_gradient(scores, above, gradient, f);
}

TEST(StepMath, folds_whole_numbers_to_their_residues) {
  for (const int value : {-16'777'215, -700'001, -8, -4, -3, 0, 3, 4, 10, 11, 1'234'567, 16'777'216}) {
    Vector one = {static_cast<float>(value)};
    fold(one);
    const int residue = static_cast<int>(one[0]);
    EXPECT_EQ((value - residue) % kModulus, 0) << value;
    EXPECT_LE(std::abs(residue), 3) << value;
  }
}

TEST(StepMath, adam_moves_each_weight_against_its_gradient) {
  Vector weights(2, 1), gradients = {0.5F, -2}, first(2, 0), second(2, 0);
  adam(2, {.weights = weights.data(), .gradients = gradients.data(), .first = first.data(), .second = second.data()},
       false);
  EXPECT_LT(weights[0], 1);
  EXPECT_GT(weights[1], 1);
}

}  // namespace
}  // namespace assay::train
