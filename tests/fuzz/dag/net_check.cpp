#include "tests/fuzz/dag/net_check.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include "caffe/error.hpp"
#include "caffe/passes/pass.hpp"
#include "tests/fuzz/dag/random_numbers.hpp"
#include "tests/fuzz/dag/worker_check.hpp"

namespace caffe::fuzz {
namespace {

// The precision of sums of a few thousand products in double.
constexpr TypePrecision kDouble{1e-13, 1e-300};

struct Variant {
  std::string name;
  NetOptions options;
};

std::vector<Variant> Variants() {
  std::vector<Variant> variants = {
      {"reuse", {.keep_all = false}},
      {"without backward", {.keep_all = false, .with_backward = false}}};
  std::vector<std::string> optional;
  for (const auto& pass : StandardPasses()) {
    if (pass->is_optional()) optional.emplace_back(pass->name());
  }
  for (const std::string& pass : optional)
    variants.push_back({"without " + pass, {.keep_all = false, .disabled_passes = {pass}}});
  variants.push_back({"without optional passes", {.keep_all = false, .disabled_passes = optional}});
  variants.push_back({"keep-all without optional passes", {.disabled_passes = optional}});
  return variants;
}

bool TakesMaximum(const LayerParameter& layer) {
  if (layer.type() == "Pooling") return layer.pooling_param().pool() == PoolingParameter::MAX;
  return layer.type() == "Eltwise" && layer.eltwise_param().operation() == EltwiseParameter::MAX;
}

bool HasNan(const Numbers& numbers, const std::string& blob) {
  return std::ranges::any_of(numbers, [&](const auto& entry) {
    return entry.first.ends_with(" data " + blob) &&
           std::ranges::any_of(entry.second, [](double x) { return !std::isfinite(x); });
  });
}

// Blobs computed from a maximum over numbers that include NaN. A maximum ignores NaN, so if NaN
// spreads further, it is a different, finite number.
std::set<std::string> BlobsBehindMaximaOfNan(const NetParameter& net, const Numbers& exact) {
  std::set<std::string> blobs;
  for (const LayerParameter& layer : net.layer()) {
    const bool is_behind = std::ranges::any_of(layer.bottom(), [&](const std::string& bottom) {
      return blobs.contains(bottom) || (TakesMaximum(layer) && HasNan(exact, bottom));
    });
    if (is_behind) blobs.insert(layer.top().begin(), layer.top().end());
  }
  return blobs;
}

// Returns whether `numbers` of that name do not depend on such maxima. Gradients always do: they
// reach everything before a maximum.
bool IsFreeOf(const std::set<std::string>& blobs, const std::string& key) {
  const size_t data = key.find(" data ");
  return blobs.empty() || (data != std::string::npos && !blobs.contains(key.substr(data + 6)));
}

// Returns whether a gradient is the product divided by a bottom: 0 / 0 if the bottom is 0.
bool DividesByBottoms(const NetParameter& net) {
  return std::ranges::any_of(net.layer(), [](const LayerParameter& layer) {
    const EltwiseParameter& eltwise = layer.eltwise_param();
    return eltwise.operation() == EltwiseParameter::PROD && !eltwise.stable_prod_grad();
  });
}

class NetChecker {
 public:
  NetChecker(const NetParameter& net, bool plants_errors)
      : net_(net),
        in_double_(InType(net, DOUBLE)),
        type_(PrecisionOf(net)),
        plants_errors_(plants_errors) {}

  NetReport Check() {
    const RunResult typed = RunNet(net_, {});
    const RunResult exact = RunNet(in_double_, {});
    if (IsBroken("keep-all", typed) || IsBroken("keep-all in double", exact)) return report_;
    report_.refusal = typed.refusal;
    if (exact.refusal.empty()) {
      exact_ = exact.numbers;
      maxima_ = BlobsBehindMaximaOfNan(net_, exact_);
      LearnTolerance(exact.numbers, 2, 1, type_);
      CheckVariants(in_double_, exact, kDouble, " in double");
      if (typed.refusal.empty()) CheckPrecision(typed);
    }
    CheckVariants(net_, typed, type_, "");
    if (typed.refusal.empty()) {
      CheckPlanAgain();
      CheckReshape();
      CheckMemoryLimit();
      CheckWorkers();
    }
    return report_;
  }

 private:
  void Find(const std::string& check, const std::string& reason) {
    if (!reason.empty()) report_.findings.push_back({check, reason});
  }

  bool IsBroken(const std::string& check, const RunResult& result) {
    Find(check, result.failure);
    return !result.failure.empty();
  }

  // Learns from noise as strong as the rounding of that type.
  void LearnTolerance(const Numbers& exact, int runs, double strength, const TypePrecision& type) {
    for (int i = 0; i < runs; ++i) {
      const RunResult noisy = RunNet(in_double_, {.noise = strength * type.relative,
                                                  .absolute_noise = strength * type.smallest,
                                                  .rounds_again = type_.narrows_backward,
                                                  .noise_seed = ++noise_seed_});
      Find("noise", noisy.failure);
      tolerance_.Learn(exact, noisy.numbers, type.relative);
    }
  }

  void Plant(Numbers* numbers) const {
    const auto is_compared = [&](const auto& entry) {
      return IsFreeOf(maxima_, entry.first) && !entry.second.empty() &&
             entry.first.find(" index") == std::string::npos;
    };
    if (!plants_errors_ || std::ranges::none_of(*numbers, is_compared)) return;
    RandomNumbers random(numbers->size());
    while (true) {
      auto at = numbers->begin();
      std::advance(at, random.Below(static_cast<int64_t>(numbers->size())));
      if (!is_compared(*at)) continue;
      double& value = random.Pick({&at->second.front(), &at->second.back()})[0];
      value = std::isfinite(value) ? 1.5 * value + 0.5 : 0;
      return;
    }
  }

  static bool HasAny(const Numbers& numbers, const std::function<bool(double)>& is_it) {
    return std::ranges::any_of(
        numbers, [&](const auto& entry) { return std::ranges::any_of(entry.second, is_it); });
  }

  // Beyond the range of the narrowest type, in which the value becomes infinite.
  bool IsBeyondRange(double value) const {
    return std::abs(value) > (type_.may_overflow ? 0x1p14 : 1e37);
  }
  bool Overflows() const {
    return HasAny(exact_,
                  [&](double value) { return std::isfinite(value) && IsBeyondRange(value); });
  }
  bool HasNonFinite() const {
    return HasAny(exact_, [](double value) { return !std::isfinite(value); });
  }

  // Fast kernels add or leave out products with 0: from padding, or unused elements of a vector. So
  // NaN and infinity may spread further than in double, and fusion affects where a sum overflows.
  // In 16 bits a sum that is nearly 0 may be 0, and then be a divisor.
  NanPlaces PlacesIn(const TypePrecision& type) const {
    const bool divides = type.relative >= 0x1p-10 && DividesByBottoms(net_);
    return &type != &kDouble && (divides || Overflows() || HasNonFinite()) ? NanPlaces::kAny
                                                                           : NanPlaces::kSame;
  }

  // A NaN among the inputs has to reach everything that depends on it. An infinite input may become
  // a number again: sigmoid(-inf), while another plan has -inf * 0.
  void CheckNanIsThere(const std::string& check, const Numbers& numbers) {
    if (!HasAny(exact_, [](double value) { return std::isinf(value); }))
      Find(check, DescribeHiddenNan(exact_, numbers, tolerance_));
  }

  void Compare(const std::string& check, const Numbers& expected, Numbers numbers,
               const TypePrecision& type) {
    Plant(&numbers);
    const NanPlaces places = PlacesIn(type);
    if (places == NanPlaces::kAny) {
      CheckNanIsThere(check, numbers);
      std::erase_if(numbers, [&](const auto& entry) { return !IsFreeOf(maxima_, entry.first); });
    }
    std::string reason =
        DescribeDifference(expected, numbers, tolerance_, type, places, &report_.counts[check]);
    if (reason.empty()) return;
    // A ReLU or a maximum that is nearly undecided may go either way; a few runs, or noise much
    // stronger than this type's, may not have shown it.
    if (!plants_errors_ && learned_more_.insert(&type).second) {
      LearnTolerance(RunNet(in_double_, {}).numbers, 24, 2, type);
      ComparisonCount again;
      reason = DescribeDifference(expected, numbers, tolerance_, type, places, &again);
    }
    Find(check, reason);
  }

  void CheckVariants(const NetParameter& net, const RunResult& expected, const TypePrecision& type,
                     const std::string& suffix) {
    for (const Variant& variant : Variants()) {
      const std::string check = variant.name + suffix;
      const RunResult result = RunNet(net, {.net = variant.options});
      if (IsBroken(check, result)) continue;
      if (result.refusal != expected.refusal) {
        Find(check,
             StrCat("refused with '", result.refusal, "', keep-all with '", expected.refusal, "'"));
      } else if (result.refusal.empty()) {
        Compare(check, expected.numbers, result.numbers, type);
      }
    }
  }

  void CheckPrecision(const RunResult& typed) {
    if (!Overflows()) Compare("precision", exact_, typed.numbers, type_);
  }

  void CheckPlanAgain() {
    const NetOptions reuse{.keep_all = false};
    reuse_ = RunNet(net_, {.net = reuse});
    RunResult again = RunNet(net_, {.net = reuse});
    Plant(&again.numbers);
    Find("plan again", reuse_.plan == again.plan ? "" : "the plan is another one");
    Find("plan again",
         DescribeBitDifference(reuse_.numbers, again.numbers, &report_.counts["plan again"]));
  }

  // Here gradients start from 0 in each pass, and the running statistics have changed.
  void CheckReshape() {
    const NetOptions reuse{.keep_all = false};
    RunResult reshaped = RunNet(net_, {.net = reuse, .reshape = true});
    if (IsBroken("reshape", reshaped) || !reshaped.refusal.empty()) return;
    RunResult straight = RunNet(net_, {.net = reuse, .starts_anew = true});
    RemoveStatistics(&reshaped.numbers);
    Plant(&reshaped.numbers);
    Find("reshape",
         DescribeBitDifference(straight.numbers, reshaped.numbers, &report_.counts["reshape"]));
  }

  void RemoveStatistics(Numbers* numbers) const {
    for (const LayerParameter& layer : net_.layer()) {
      if (layer.type() != "BatchNorm" && layer.type() != "BN") continue;
      std::erase_if(*numbers, [&](const auto& entry) {
        return entry.first.find(" data " + layer.name() + ".") != std::string::npos;
      });
    }
  }

  // Uses a limit between the smallest plan and the usual one, which recomputes nothing.
  void CheckMemoryLimit() {
    const std::vector<int64_t> peaks = PeaksOfPlans(net_);
    const int64_t least = *std::ranges::min_element(peaks);
    if (least == peaks[0]) return;
    const int64_t limit = least + (peaks[0] - least) * RandomNumbers(peaks[0]).Below(8) / 8;
    RunResult limited = RunNet(net_, {.net = {.keep_all = false, .memory_limit = limit}});
    if (IsBroken("memory limit", limited)) return;
    Find("memory limit", limited.refusal);
    if (limited.peak > limit)
      Find("memory limit", StrCat("the plan takes ", limited.peak, " bytes of ", limit));
    Plant(&limited.numbers);
    Find("memory limit",
         DescribeBitDifference(reuse_.numbers, limited.numbers, &report_.counts["memory limit"]));
  }

  void CheckWorkers() {
    if (!CanBeDivided(net_)) return;
    const WorkerResult result = RunWorkers(net_);
    Find("workers", result.failure + result.refusal);
    if (result.two_workers.empty()) return;
    Numbers weights = result.two_workers;
    Plant(&weights);
    ComparisonCount& count = report_.counts["workers"];
    std::string reason =
        DescribeDifference(result.one_worker, weights, {}, kWorkers, NanPlaces::kSame, &count);
    if (!reason.empty() && !plants_errors_) {
      // Gradients may cancel, or grow from update to update, and two workers sum in another order.
      // If rounding to float changes a number, rounding to double changes it by 2^-29 of that; four
      // times 2^-26 of it is accepted as rounding.
      Tolerance tolerance;
      tolerance.Learn(result.one_worker, RunWorkerInFloat(net_), kWorkers.relative / 0x1p-26);
      ComparisonCount again;
      reason = DescribeDifference(result.one_worker, weights, tolerance, kWorkers, NanPlaces::kSame,
                                  &again);
    }
    Find("workers", reason);
  }

  // For weights after updates whose gradients may cancel; the nets run in double.
  static constexpr TypePrecision kWorkers{1e-9, 1e-12};

  const NetParameter net_, in_double_;
  const TypePrecision type_;
  const bool plants_errors_;
  NetReport report_;
  Numbers exact_;                 // from the keep-all net in double
  std::set<std::string> maxima_;  // blobs computed from maxima of NaN
  RunResult reuse_;
  Tolerance tolerance_;
  std::set<const TypePrecision*> learned_more_;  // types already learned again
  uint64_t noise_seed_ = 0;
};

}  // namespace

NetReport CheckNet(const NetParameter& net, bool plants_errors) {
  return NetChecker(net, plants_errors).Check();
}

}  // namespace caffe::fuzz
