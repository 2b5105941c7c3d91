#include "tests/fuzz/dag/input_values.hpp"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <limits>

#include "tests/fuzz/dag/random_numbers.hpp"

namespace caffe::fuzz {
namespace {

uint64_t HashOf(const std::string& name) {
  uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

void Poison(RandomNumbers& random, std::vector<double>* values) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const double poison =
      random.Pick({std::numeric_limits<double>::quiet_NaN(),
                   std::numeric_limits<double>::quiet_NaN(), kInfinity, -kInfinity});
  const int count = random.Between(1, 2);
  for (int i = 0; i < count && !values->empty(); ++i)
    (*values)[random.Below(static_cast<int64_t>(values->size()))] = poison;
}

}  // namespace

std::vector<double> InputValues(const std::string& name, int64_t count, uint64_t seed) {
  RandomNumbers random(seed ^ HashOf(name));
  std::vector<double> values(count);
  const int classes = name.starts_with("label") ? std::atoi(name.c_str() + 5) : 2;
  const double share = random.Chance(0.1) ? random.Pick({0.0, 1.0}) : 0.6;
  for (double& value : values) {
    if (name.starts_with("select")) {
      value = random.Chance(share) ? 1 : 0;
    } else if (IsExactInput(name)) {
      value = random.Below(classes);
    } else {
      value = random.Normal();
    }
  }
  if (name.starts_with("cont")) std::fill_n(values.begin(), std::atoi(name.c_str() + 4), 0.0);
  if (name.starts_with("nan")) Poison(random, &values);
  return values;
}

bool IsExactInput(const std::string& name) {
  return name.starts_with("label") || name.starts_with("select") || name.starts_with("binary") ||
         name.starts_with("cont");
}

}  // namespace caffe::fuzz
