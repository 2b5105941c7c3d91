#include "caffe/cuda/cudnn_problem.hpp"

#include <algorithm>
#include <set>

#include "caffe/cuda/cuda_check.hpp"
#include "caffe/cuda/cuda_stream.hpp"
#include "caffe/cuda/cudnn_error.hpp"
#include "caffe/cuda/cudnn_handle.hpp"
#include "caffe/cuda/vendor_types.hpp"
#include "caffe/device/gpu_libraries.hpp"
#include "caffe/error.hpp"

namespace caffe::cuda {
namespace {

// Problems of this process: those in use, and those that cuDNN has refused.
struct Problems {
  std::mutex mutex;
  std::map<std::string, std::weak_ptr<CudnnProblem>> in_use;
  std::vector<std::shared_ptr<CudnnProblem>> refused;

  static Problems& Get() {
    static Problems* const problems = new Problems;
    return *problems;
  }
};

bool IsCompiledAtRunTime(const PlannableGraph& graph, int64_t index) {
  std::vector<fe::BehaviorNote_t> notes;
  if (graph.get_behavior_notes_for_plan_at_index(index, notes).is_bad()) return false;
  return std::find(notes.begin(), notes.end(), fe::BehaviorNote_t::RUNTIME_COMPILATION) !=
         notes.end();
}

// A broken installation is an error, because no other engine would be found either. For chips that
// are only described, planning uses the parts that are available.
void CheckParts(fe::error_t error, bool is_described) {
  if (error.is_bad() && !is_described && IsOfMixedParts(error.get_message()))
    throw DeviceError(StrCat("cuda: cuDNN: ", error.get_message(), MixedPartsAdvice()));
}

void Check(fe::error_t error, bool is_described) {
  CheckParts(error, is_described);
  if (error.is_bad()) throw Unsupported("cuDNN: " + error.get_message());
}

// A stream for calls that capture on the handle's stream and may leave the capture open. It is
// non-blocking: while a blocking stream captures, each use of the device's default stream, by any
// thread, is an error for both.
class StreamOfHandle {
 public:
  explicit StreamOfHandle(cudnnHandle_t handle) : handle_(handle) {
    cudaStream_t stream;
    CAFFE_CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    stream_.reset(stream);
    CheckCudnn(cudnnSetStream(handle_, stream), "cudnnSetStream");
  }
  StreamOfHandle(const StreamOfHandle&) = delete;
  ~StreamOfHandle() {
    cudnnSetStream(handle_, nullptr);
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    if (cudaStreamIsCapturing(stream_.get(), &status) == cudaSuccess &&
        status != cudaStreamCaptureStatusNone) {
      cudaGraph_t graph = nullptr;
      cudaStreamEndCapture(stream_.get(), &graph);
      const GraphHandle owned(graph);
    }
    ForgetCudaError();  // errors of the attempt
  }

 private:
  const cudnnHandle_t handle_;
  StreamHandle stream_;
};

}  // namespace

thread_local bool PlanningAhead::is_on_ = false;

std::map<std::string, int64_t> PlannableGraph::AllowedPlans() {
  std::map<std::string, int64_t> allowed;
  for (fe::ManagedOpaqueDescriptor& config : plans.get_barred_engine_configs()) {
    int64_t bytes = 0;  // older versions report it only once the plan is built
    const bool is_known = fe::detail::get_workspace_size(config, bytes).is_good();
    if (is_known && bytes > static_cast<int64_t>(kWorkspaceLimit)) continue;
    allowed.emplace(fe::detail::get_engine_tag(config), bytes);
  }
  return allowed;
}

class CudnnProblem::Plans final : public PlanSource {
 public:
  Plans(CudaDevice& device, const CudnnDescription& description, const EngineChoice& choice)
      : device_(device),
        is_described_(device.is_described()),
        graph_(description.graph),
        tensors_(description.tensors),
        choice_(choice) {}

  std::vector<ProposedPlan> Propose() override {
    Check(graph_->validate(), is_described_);
    Check(graph_->build_operation_graph(is_described_ ? nullptr : CudnnHandleOf(device_)),
          is_described_);
    Check(graph_->create_execution_plans({fe::HeurMode_t::A, fe::HeurMode_t::FALLBACK}),
          is_described_);
    ApplySettings();
    workspace_bytes_ = graph_->AllowedPlans();
    std::vector<ProposedPlan> proposed;
    std::set<std::string> seen;
    for (int64_t i = 0; i < graph_->get_execution_plan_count(); ++i) {
      std::string name;
      if (graph_->get_plan_name_at_index(i, name).is_bad()) continue;
      if (workspace_bytes_.count(name) == 0 || !seen.insert(name).second) continue;
      proposed.push_back({i, name, IsCompiledAtRunTime(*graph_, i)});
    }
    return proposed;
  }

  std::optional<size_t> Build(const ProposedPlan& plan) override {
    // Compiling ends in a call of the driver.
    if (plan.is_compiled && is_described_)
      return static_cast<size_t>(workspace_bytes_.at(plan.name));
    CountBuiltGpuPlan();
    const fe::error_t error = graph_->build_plan_at_index(plan.index);
    CheckParts(error, is_described_);
    if (error.is_bad()) return std::nullopt;
    return WorkspaceOf(plan.index);
  }

  std::vector<uint8_t> Save(const ProposedPlan& plan) override {
    std::vector<uint8_t> bytes;
    if (is_described_) return bytes;
    // The frontend saves the plan that was built last; a built plan is not built again.
    if (graph_->build_plan_at_index(plan.index).is_bad()) return bytes;
    try {
      if (graph_->serialize(bytes).is_bad()) bytes.clear();
    } catch (const std::exception&) {  // thrown by the frontend for an engine that cannot be saved
      bytes.clear();
    }
    return bytes;
  }

  std::optional<size_t> Restore(std::span<const uint8_t> saved) override {
    if (is_described_) return std::nullopt;
    auto restored = std::make_shared<PlannableGraph>();
    const cudnnHandle_t handle = CudnnHandleOf(device_);
    try {
      // The frontend runs the plan once, in a capture that it discards, and continues if that
      // fails.
      const StreamOfHandle stream(handle);
      if (restored->deserialize(handle, {saved.begin(), saved.end()}).is_bad()) return std::nullopt;
    } catch (const std::exception&) {  // thrown by nlohmann::json for damaged bytes
      return std::nullopt;
    }
    std::swap(graph_, restored);
    if (const std::optional<size_t> bytes = WorkspaceOf(0)) return bytes;
    std::swap(graph_, restored);
    return std::nullopt;
  }

  std::vector<double> Times(std::span<const BuiltPlan> plans,
                            const MayTryAlgorithm& may_try) override {
    std::vector<int64_t> numbers;
    std::vector<TimedBuffer> buffers;
    for (const auto& [number, buffer] : tensors_) {
      numbers.push_back(number);
      buffers.push_back(buffer);
    }
    TimedBuffer& workspace = buffers.emplace_back();
    for (const BuiltPlan& plan : plans)
      workspace.bytes = std::max(workspace.bytes, plan.workspace_bytes);
    const auto stream = static_cast<cudaStream_t>(device_.compute_stream().native());
    const auto launch = [&](size_t i, std::span<void* const> places) {
      CudnnPointers pointers;
      for (size_t k = 0; k < numbers.size(); ++k) pointers[numbers[k]] = places[k];
      return Execute(device_, pointers, places.back(), plans[i].plan.index, stream).is_good();
    };
    return TimeAlgorithms(device_, buffers, plans.size(), launch, may_try);
  }

  fe::error_t Execute(CudaDevice& device, CudnnPointers& pointers, void* workspace, int64_t index,
                      cudaStream_t stream) {
    const cudnnHandle_t handle = CudnnHandleOf(device);
    CheckCudnn(cudnnSetStream(handle, stream), "cudnnSetStream");
    return graph_->execute_plan_at_index(handle, pointers, workspace, index);
  }

 private:
  void ApplySettings() {
    graph_->deselect_workspace_greater_than(static_cast<int64_t>(kWorkspaceLimit));
    if (!choice_.allows_tensor_cores) {
      graph_->deselect_numeric_notes({fe::NumericalNote_t::TENSOR_CORE,
                                      fe::NumericalNote_t::DOWN_CONVERT_INPUTS,
                                      fe::NumericalNote_t::REDUCED_PRECISION_REDUCTION});
    }
    if (choice_.is_deterministic)
      graph_->deselect_numeric_notes({fe::NumericalNote_t::NONDETERMINISTIC});
  }
  std::optional<size_t> WorkspaceOf(int64_t index) const {
    const int64_t bytes = graph_->get_workspace_size_plan_at_index(index);
    if (bytes < 0 || static_cast<size_t>(bytes) > kWorkspaceLimit) return std::nullopt;
    return static_cast<size_t>(bytes);
  }

  CudaDevice& device_;  // unused if only described: it may have been destroyed
  const bool is_described_;
  std::shared_ptr<PlannableGraph> graph_;
  const std::map<int64_t, TimedBuffer> tensors_;
  const EngineChoice choice_;
  std::map<std::string, int64_t> workspace_bytes_;
};

std::shared_ptr<CudnnProblem> CudnnProblem::Of(CudaDevice& device,
                                               const CudnnDescription& description,
                                               const EngineChoice& choice) {
  const std::string plan_key =
      StrCat(AlgorithmKey(device, "cudnn", cudnnGetVersion(), choice.problem), " graph ",
             description.graph->key(), description.notes, " frontend ", CUDNN_FRONTEND_VERSION,
             choice.is_timed ? "" : " first", choice.is_deterministic ? " deterministic" : "");
  Problems& problems = Problems::Get();
  const std::lock_guard lock(problems.mutex);
  std::erase_if(problems.in_use, [](const auto& entry) { return entry.second.expired(); });
  std::weak_ptr<CudnnProblem>& known =
      problems.in_use[StrCat(plan_key, " on device ", device.id())];
  if (std::shared_ptr<CudnnProblem> problem = known.lock()) return problem;
  auto problem = std::make_shared<CudnnProblem>(device, description, choice, plan_key);
  known = problem;
  return problem;
}

CudnnProblem::CudnnProblem(CudaDevice& device, const CudnnDescription& description,
                           EngineChoice choice, std::string plan_key)
    : choice_(std::move(choice)),
      is_described_(device.is_described()),
      request_{AlgorithmKey(device, "cudnn", cudnnGetVersion(), choice_.problem),
               std::move(plan_key), choice_.is_timed, choice_.engine},
      plans_(std::make_unique<Plans>(device, description, choice_)) {}

CudnnProblem::~CudnnProblem() = default;

void CudnnProblem::Build(const PlanCaches& caches) {
  try {
    built_ = BuildPlans(*plans_, request_, caches);
  } catch (const Unsupported& why) {
    refusal_ = why.what();
  }
  if (refusal_.empty() && built_.plans.empty()) {
    refusal_ = choice_.engine >= 0
                   ? StrCat("cuDNN has no engine ", choice_.engine, " for it (conv_algos_override)")
                   : StrCat("cuDNN has no engine for it within ", kWorkspaceLimit >> 20,
                            " MiB of workspace");
  }
  if (!refusal_.empty()) {
    plans_.reset();
    const std::lock_guard lock(Problems::Get().mutex);
    Problems::Get().refused.push_back(shared_from_this());
  }
}

std::string CudnnProblem::Plan(bool is_ahead) {
  const std::lock_guard lock(mutex_);
  const PlanCaches caches{AlgorithmCache::OfUser(), PlanStore::OfUser()};
  if (!is_built_) Build(caches);
  is_built_ = true;
  if (refusal_.empty() && !is_ahead && !is_chosen_) {
    chosen_ = ChoosePlan(*plans_, request_, built_, caches);
    is_chosen_ = true;
  }
  return refusal_;
}

size_t CudnnProblem::workspace_bytes() const {
  const std::lock_guard lock(mutex_);
  return built_.plans[chosen_].workspace_bytes;
}

std::vector<std::string> CudnnProblem::engines() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> names;
  for (const BuiltPlan& plan : built_.plans) {
    const bool is_planned_only = plan.plan.is_compiled && is_described_;
    names.push_back(plan.plan.name + (is_planned_only ? " (needs a driver to be built)" : ""));
  }
  if (!names.empty()) std::swap(names[0], names[chosen_]);
  return names;
}

void CudnnProblem::Run(CudaDevice& device, CudnnPointers pointers, void* workspace,
                       cudaStream_t stream) {
  const std::lock_guard lock(mutex_);
  fe::error_t error =
      plans_->Execute(device, pointers, workspace, built_.plans[chosen_].plan.index, stream);
  if (error.is_good()) return;
  ThrowErrorOfEarlierWork(device);
  throw DeviceError("cuda: cuDNN: " + error.get_message());
}

}  // namespace caffe::cuda
