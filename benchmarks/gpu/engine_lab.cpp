// Builds and times all plans that cuDNN proposes for problems of the bundled nets' training steps;
// a net's plan times only the first few that the heuristics propose.
//   engine_lab [--seconds N] [--threads 16] [--list] [PREFIX...]
// prints one JSON line for each problem whose name begins with a PREFIX: its bytes and operations,
// the number of plans, and the plans that could be built, the fastest first. Problems that have not
// started within the time limit are skipped and reported. Results are compared with those of the
// majority of plans, and fused steps with the same steps run separately.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "caffe/cuda/cuda_check.hpp"
#include "caffe/cuda/cudnn_handle.hpp"
#include "caffe/cuda/noise.hpp"
#include "caffe/cuda/samples.hpp"
#include "caffe/device/device.hpp"
#include "caffe/device/device_fault.hpp"
#include "caffe/device/launch_timer.hpp"
#include "caffe/error.hpp"
#include "engine_questions.hpp"

namespace {

using namespace engine_lab;
using Json = nlohmann::ordered_json;

constexpr size_t kListed = 12;         // plans listed per problem
constexpr double kCheckedBytes = 3e8;  // larger problems' sums are not compared on the host

struct Plan {
  int64_t index = 0;
  std::string name;
  bool is_compiled = false;
  double build_seconds = 0;
};

double SecondsSince(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// A problem with its plans, which one thread builds.
struct Built {
  std::unique_ptr<Problem> problem;
  std::vector<Plan> plans;
  int64_t proposed = 0;
  std::string refusal;
  std::map<std::string, int> failures;  // number of plans that could not be built, by reason
};

Built Build(CudaDevice& device, const Geometry& geometry, const Describe& describe) {
  Built built{std::make_unique<Problem>(device, geometry), {}, 0, "", {}};
  describe(*built.problem);
  fe::graph::Graph& graph = built.problem->graph();
  const auto refuses = [&](fe::error_t error) {
    if (error.is_bad() && built.refusal.empty()) built.refusal = error.get_message();
    return error.is_bad();
  };
  if (refuses(graph.validate()) || refuses(graph.build_operation_graph(CudnnHandleOf(device))) ||
      refuses(graph.create_execution_plans({fe::HeurMode_t::A, fe::HeurMode_t::FALLBACK})))
    return built;
  built.proposed = graph.get_execution_plan_count();
  std::set<std::string> seen;
  for (int64_t i = 0; i < built.proposed; ++i) {
    Plan plan;
    plan.index = i;
    if (graph.get_plan_name_at_index(i, plan.name).is_bad()) continue;
    if (!seen.insert(plan.name).second) continue;
    std::vector<fe::BehaviorNote_t> notes;
    if (graph.get_behavior_notes_for_plan_at_index(i, notes).is_good())
      plan.is_compiled = std::ranges::count(notes, fe::BehaviorNote_t::RUNTIME_COMPILATION) > 0;
    const auto begin = std::chrono::steady_clock::now();
    fe::error_t error = graph.build_plan_at_index(i);
    plan.build_seconds = SecondsSince(begin);
    if (error.is_bad()) {
      ++built.failures[error.get_message().substr(0, 120)];
    } else {
      built.plans.push_back(std::move(plan));
    }
  }
  return built;
}

// Memory of a problem on the device, with noise in the inputs.
class Places {
 public:
  Places(CudaDevice& device, const Built& built) : device_(device), problem_(*built.problem) {
    int64_t workspace = 0;
    for (const Plan& plan : built.plans)
      workspace =
          std::max(workspace, problem_.graph().get_workspace_size_plan_at_index(plan.index));
    for (const auto& [number, buffer] : problem_.tensors()) {
      memory_[number] = device.Allocate(buffer.bytes);
      FillWithNoise(device, *buffer.numbers, memory_[number].get(), buffer.bytes,
                    static_cast<size_t>(number));
    }
    workspace_ = device.Allocate(static_cast<size_t>(std::max<int64_t>(workspace, 1)));
  }
  bool has(int64_t number) const { return memory_.contains(number); }
  const TimedBuffer& buffer(int64_t number) const { return problem_.tensors().at(number); }
  void* at(int64_t number) const { return memory_.at(number).get(); }

  // Fills each result with bytes `value` before the run: 0xFF gives NaN in every float type.
  void Run(const Plan& plan, int value) {
    for (const auto& [number, buffer] : problem_.tensors()) {
      if (buffer.is_output)
        CAFFE_CUDA_CHECK(cudaMemsetAsync(at(number), value, buffer.bytes, stream()));
    }
    Launch(plan);
    device_.Synchronize();
  }
  void Launch(const Plan& plan) {
    CudnnPointers pointers;
    for (const auto& [number, memory] : memory_) pointers[number] = memory.get();
    const cudnnHandle_t handle = CudnnHandleOf(device_);
    CheckCudnn(cudnnSetStream(handle, stream()), "cudnnSetStream");
    fe::error_t error =
        problem_.graph().execute_plan_at_index(handle, pointers, workspace_.get(), plan.index);
    if (error.is_bad()) throw caffe::DeviceError(error.get_message());
  }
  Sample SampleAt(int64_t number) const {
    constexpr int64_t kStretches = 32, kLength = 4096;
    const TimedBuffer& buffer = this->buffer(number);
    return SampleOf(device_, *buffer.numbers, at(number),
                    static_cast<int64_t>(buffer.bytes / caffe::SizeOf(*buffer.numbers)), kStretches,
                    kLength);
  }
  Results OutputsNow() const {
    Results results;
    for (const auto& [number, buffer] : problem_.tensors())
      if (buffer.is_output) results.push_back(SampleAt(number));
    return results;
  }

 private:
  cudaStream_t stream() const {
    return static_cast<cudaStream_t>(device_.compute_stream().native());
  }

  CudaDevice& device_;
  Problem& problem_;
  std::map<int64_t, std::shared_ptr<void>> memory_;
  std::shared_ptr<void> workspace_;
};

// The median of several runs.
double SecondsOf(CudaDevice& device, Places& places, const Plan& plan) {
  constexpr int kRuns = 10;
  caffe::LaunchTimer timer(device);
  std::vector<double> seconds;
  for (int run = 0; run < kRuns; ++run) seconds.push_back(timer.Time([&] { places.Launch(plan); }));
  std::ranges::sort(seconds);
  return seconds[kRuns / 2];
}

// The largest error of the sums over channels, compared with sums of the results themselves, for a
// few channels, relative to the norm of the summands.
double ErrorOfSums(const Places& places, CudaDevice& device, int64_t result, int64_t factor,
                   int64_t channels) {
  const TimedBuffer& buffer = places.buffer(result);
  const int64_t count = static_cast<int64_t>(buffer.bytes / caffe::SizeOf(*buffer.numbers));
  const auto all = [&](int64_t number) {
    return SampleOf(device, *buffer.numbers, places.at(number), count, 1, count);
  };
  const Sample z = all(result), x = factor == result ? z : all(factor);
  const Sample sums = places.SampleAt(kSum), dots = places.SampleAt(kDot);
  double worst = 0;
  for (const int64_t c : {int64_t{0}, channels / 3, channels - 1}) {
    double sum = 0, dot = 0, norm = 0, dot_norm = 0;
    for (int64_t i = c; i < count; i += channels) {
      const auto at = static_cast<size_t>(i);
      sum += z[at], dot += z[at] * x[at];
      norm += z[at] * z[at], dot_norm += z[at] * z[at] * x[at] * x[at];
    }
    const auto at = static_cast<size_t>(c);
    worst = std::max({worst, std::abs(sums[at] - sum) / std::sqrt(norm),
                      std::abs(dots[at] - dot) / std::sqrt(dot_norm)});
  }
  return worst;
}

// Difference between the fused result and the convolution alone followed by the other steps on the
// host.
double ErrorOfFused(CudaDevice& device, const Question& question, const Places& fused) {
  const Built built = Build(device, question.geometry, question.plain);
  if (built.plans.empty()) return std::nan("");
  Places places(device, built);
  places.Run(built.plans[0], 0xFF);
  const auto& tensors = built.problem->tensors();
  const bool is_forward = tensors.at(kY).is_output;
  Sample expected = places.SampleAt(is_forward ? kY : kX);
  if (!is_forward) {
    const auto sample = [&](Tensor number) {
      return fused.has(number) ? fused.SampleAt(number) : Sample{};
    };
    const Sample addend = sample(kAddend), relu_result = sample(kReluResult);
    for (size_t i = 0; i < expected.size(); ++i) {
      if (!addend.empty()) expected[i] += addend[i];
      if (!relu_result.empty() && relu_result[i] <= 0) expected[i] = 0;
    }
  }
  return LargestDifference({fused.SampleAt(is_forward ? kY : kX)}, {expected});
}

Json Answer(CudaDevice& device, const Question& question, const Built& built) {
  Problem& problem = *built.problem;
  Json answer{{"problem", question.name},
              {"bytes", problem.bytes()},
              {"flops", problem.flops()},
              {"proposed", built.proposed},
              {"built", built.plans.size()}};
  if (!built.refusal.empty()) answer["refused"] = built.refusal.substr(0, 200);
  if (!built.failures.empty()) answer["not_built"] = built.failures;
  if (built.plans.empty()) return answer;
  Places places(device, built);
  struct Timed {
    const Plan* plan = nullptr;
    double seconds = 0;
    bool needs_zeros = false, moves = false, has_numbers = false;
    std::string error;
    std::optional<Results> results;
  };
  std::vector<Timed> all;
  for (const Plan& plan : built.plans) {
    Timed& timed = all.emplace_back();
    timed.plan = &plan;
    try {
      const auto run = [&](int value) {
        places.Run(plan, value);
        return places.OutputsNow();
      };
      const auto has_numbers = [](const Results& results) {
        return std::isfinite(LargestDifference(results, results));
      };
      Results first = run(0xFF);
      if (!has_numbers(first)) {
        first = run(0);
        timed.needs_zeros = has_numbers(first);
      }
      timed.moves = run(timed.needs_zeros ? 0 : 0xFF) != first;
      timed.has_numbers = has_numbers(first);
      timed.results = std::move(first);
      timed.seconds = SecondsOf(device, places, plan);
    } catch (const caffe::DeviceFault&) {
      throw;
    } catch (const caffe::Error& error) {
      timed.error = error.what();
    }
  }
  std::vector<std::optional<Results>> results;
  for (Timed& timed : all) results.push_back(timed.has_numbers ? timed.results : std::nullopt);
  const std::vector<bool> agree = Agreeing(std::move(results));
  std::vector<size_t> order;
  for (size_t i = 0; i < all.size(); ++i) order.push_back(i);
  std::ranges::stable_sort(order, [&](size_t a, size_t b) {
    return std::pair(!agree[a], all[a].seconds) < std::pair(!agree[b], all[b].seconds);
  });
  Json& plans = answer["plans"] = Json::array();
  for (const size_t i : order) {
    const Timed& timed = all[i];
    if (plans.size() == kListed) break;
    Json plan{{"name", timed.plan->name}, {"proposed_as", timed.plan->index}};
    plan["ms"] = std::round(1e7 * timed.seconds) / 1e4;
    plan["workspace"] = problem.graph().get_workspace_size_plan_at_index(timed.plan->index);
    if (timed.plan->is_compiled)
      plan["compile_seconds"] = std::round(1e3 * timed.plan->build_seconds) / 1e3;
    if (timed.needs_zeros) plan["needs_zeros"] = true;
    if (timed.moves) plan["moves"] = true;  // results differ between two runs
    if (!agree[i]) plan["disagrees"] = true;
    if (!timed.error.empty()) plan["error"] = timed.error.substr(0, 200);
    plans.push_back(std::move(plan));
  }
  if (order.empty() || !agree[order[0]]) return answer;
  const Timed& best = all[order[0]];
  places.Run(*best.plan, best.needs_zeros ? 0 : 0xFF);
  if (question.plain) answer["error_of_fused"] = ErrorOfFused(device, question, places);
  if (problem.tensors().contains(kSum) && problem.bytes() < kCheckedBytes) {
    const bool is_forward = problem.tensors().at(kY).is_output;
    answer["error_of_sums"] =
        is_forward ? ErrorOfSums(places, device, kY, kY, question.geometry.k)
                   : ErrorOfSums(places, device, kX, kNormInput, question.geometry.c);
  }
  return answer;
}

}  // namespace

int main(int argc, char** argv) {
  double seconds = 0;
  size_t threads = 16;
  int gpu = 0;
  bool is_listed = false;
  std::vector<std::string> prefixes;
  CLI::App app{"Times all of cuDNN's plans for problems of training steps."};
  app.add_option("--seconds", seconds, "problems begin within this time; 0: all do");
  app.add_option("--threads", threads, "that build plans at the same time");
  app.add_option("--gpu", gpu);
  app.add_flag("--list", is_listed, "print the problems' names");
  app.add_option("prefixes", prefixes, "problems whose names begin so");
  CLI11_PARSE(app, argc, argv);
  try {
    std::vector<Question> questions = AllQuestions();
    std::erase_if(questions, [&](const Question& question) {
      return !prefixes.empty() && std::ranges::none_of(prefixes, [&](const std::string& prefix) {
        return question.name.starts_with(prefix);
      });
    });
    if (is_listed) {
      for (const Question& question : questions) std::printf("%s\n", question.name.c_str());
      return 0;
    }
    const auto begin = std::chrono::steady_clock::now();
    const std::shared_ptr<caffe::Device> made = caffe::MakeDevice(caffe::DeviceKind::kCuda, gpu);
    CudaDevice& device = static_cast<CudaDevice&>(*made);
    std::vector<Built> built(questions.size());
    std::vector<std::string> errors(questions.size());
    std::atomic<size_t> next = 0;
    std::vector<std::thread> builders;
    for (size_t i = 0; i < threads; ++i) {
      builders.emplace_back([&] {
        device.MakeCurrent();
        for (size_t at; (at = next++) < questions.size();) {
          if (seconds > 0 && SecondsSince(begin) > 0.6 * seconds) {
            errors[at] = "no time left";
            continue;
          }
          try {
            built[at] = Build(device, questions[at].geometry, questions[at].describe);
          } catch (const std::exception& error) {
            errors[at] = error.what();
          }
        }
      });
    }
    for (std::thread& builder : builders) builder.join();
    std::fprintf(stderr, "built in %.1f s\n", SecondsSince(begin));
    device.MakeCurrent();
    for (size_t i = 0; i < questions.size(); ++i) {
      if (seconds > 0 && SecondsSince(begin) > seconds) errors[i] = "no time left";
      Json line{{"problem", questions[i].name}};
      if (errors[i].empty()) {
        try {
          line = Answer(device, questions[i], built[i]);
        } catch (const caffe::DeviceFault&) {
          throw;
        } catch (const std::exception& error) {
          errors[i] = error.what();
        }
      }
      if (!errors[i].empty()) line["error"] = errors[i];
      built[i] = {};
      std::printf("%s\n", line.dump().c_str());
      std::fflush(stdout);
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "engine_lab: %s\n", error.what());
    return 1;
  }
  return 0;
}
