// Net: a compiled network.
//
//     caffe::Net net("deploy.prototxt", caffe::TEST);
//     net.CopyTrainedLayersFrom("net.caffemodel");
//     float* image = net.input_blobs()[0]->mutable_cpu_data();  // N x C x H x W; to be filled
//     const float* scores = net.Forward()[0]->cpu_data();
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "caffe/blob.hpp"
#include "caffe/dtype.hpp"
#include "caffe/export.hpp"
#include "caffe/layer.hpp"
#include "caffe/proto/caffe.pb.h"

namespace caffe {

class Graph;
class TrainingNet;

struct NetOptions {
  // true: every named blob can be read and written between any two layers, Forward and Backward may
  // be partial, and gradients accumulate until ClearParamDiffs. false: the plan of `caffe train`,
  // with fused steps and reused memory; only inputs, outputs and parameters are readable.
  bool keep_all = true;
  // false omits everything that only backward needs.
  bool with_backward = true;
  // Seed of fillers, dropout and data order; if unset, that of Caffe::set_random_seed or the
  // system.
  std::optional<uint64_t> seed;
  // Optional passes to skip; CAFFE_DISABLE_PASSES (comma-separated) adds to them.
  std::vector<std::string> disabled_passes;
  // Records that each data layer has delivered in the resumed run.
  std::map<std::string, uint64_t> delivered_records;
  // The GPU's number if Caffe::mode() is GPU; defaults to Caffe::device().
  std::optional<int> gpu;
  // The rank and the number of ranks that work on one net: each reads its own part of the data.
  int rank = 0, ranks = 1;
  // Data layers end each epoch with a smaller batch if their batch size does not divide the number
  // of records, so that a pass over the data uses each record once; see EpochBatches.
  bool whole_epochs = false;
  // Storage and compute types of a net whose definition has no default_* fields; fields of layers
  // still take precedence.
  Precision precision = FP32;
  // File of `caffe calibrate` with the ranges that precision INT8 and FAKE_INT8 need; if empty, the
  // file that the definition names.
  std::string calibration = {};
  // Compiles for other processors: precision INT8 uses 8 bits even where floats are faster on this
  // processor, and no step depends on the kernels that are available here.
  bool for_any_processor = false;
  // strict_fp32: matrix products of floats keep all bits, where GPUs would round factors to TF32.
  // deterministic: results are bitwise equal in each run. NetParameter's fields of these names set
  // them as well.
  bool strict_fp32 = false, deterministic = false;
  // Skips, each with a warning, fields of the file that the schema does not have, and layers of
  // unknown type together with the layers that need their tops.
  bool lenient = false;
  // A net of phase TEST whose steps read converted copies of the weights (16 or 8 bits, or another
  // order) holds only the copies. Whoever asks for the weights gets their exact values again, read
  // from the .caffemodel, which stays open, or from the fillers; they then stay in memory. true:
  // they stay from the beginning. Weights that come from elsewhere stay in any case.
  bool keep_weights = false;
  // Others write the weights between runs of a net of phase TEST, as a solver does for its test
  // nets: steps read them in place where they can.
  bool weights_change = false;
  // Limit, in bytes, of the memory for training: parameters, gradients, `solver_states` tensors per
  // parameter, inputs and outputs, activations and workspace. Backward recomputes as many results
  // of forward as the limit requires; the numbers stay the same. 0: no limit. Throws
  // InvalidArgument if even the smallest plan needs more, and for a keep-all net.
  int64_t memory_limit = 0;
  int solver_states = 0;
  // The prototxt of the net, if it was read from one: errors of a layer, both at construction and
  // in runs, begin with the file, line and column that define the layer.
  std::string file;
  // false: compile without creating parameters or reading beyond the first record (`caffe plan`).
  bool allocate = true;
  // A chip that need not be present ("H200"): the net is planned for it, whatever Caffe::mode() is.
  // Requires `allocate` to be false.
  std::string described_device;
};

// A compiled network of one phase: its layers, blobs and parameters. Layers and blobs are numbered
// from 0 in the order of layer_names() and blob_names().
//
// One thread at a time: a second one gets InvalidArgument. Every method may throw: InvalidArgument
// for a wrong definition or name (with the layer's name and the nearest valid one), IoError for
// files, Unsupported for features that this build lacks.
class CAFFE_EXPORT Net {
 public:
  // `param` may hold both phases; it is filtered by its state. Compiles immediately.
  explicit Net(const NetParameter& param, const NetOptions& options = {});
  // Reads a prototxt, for a phase, level and stages.
  Net(const std::string& file, Phase phase, int level = 0,
      const std::vector<std::string>& stages = {}, const NetOptions& options = {});
  ~Net();
  Net(const Net&) = delete;
  Net& operator=(const Net&) = delete;

  // Runs all layers; returns the net's outputs (tops that nothing reads) in alphabetical order.
  // `loss` receives the weighted sum of the losses.
  const std::vector<Blob*>& Forward(float* loss = nullptr);
  // Runs layers start to end, both included, of a keep-all net; returns their part of the loss.
  // Throws InvalidArgument for a net that is not keep-all, for layers that do not exist, and if
  // start is not 0 after an input was reshaped.
  float ForwardFromTo(int start, int end);
  // Computes gradients of all learnable parameters. In a keep-all net they start from the diffs of
  // the output blobs (which hold the loss weights) and are added to the parameters' diffs.
  void Backward();
  // Runs backward for layers start down to end, both included, of a keep-all net.
  void BackwardFromTo(int start, int end);
  // Forward and Backward as one run; returns the weighted sum of the losses.
  float ForwardBackward();
  // The same without waiting for the device: AwaitLoss() waits for the oldest pass whose loss has
  // not been returned yet and returns it. Keep only few passes in flight.
  void LaunchForwardBackward();
  float AwaitLoss();
  // Compiles for the new shapes after an input blob was reshaped. Forward does it automatically.
  void Reshape();
  // Sets the parameters' gradients to 0.
  void ClearParamDiffs();
  // Called in the running thread around each layer, with its number; the layers then run one by
  // one, so blobs can be read and changed in between. An exception ends the run and propagates to
  // its caller. Keep-all nets only (InvalidArgument).
  using LayerCallback = std::function<void(int layer)>;
  void AddBeforeForward(LayerCallback callback);
  void AddAfterForward(LayerCallback callback);
  void AddBeforeBackward(LayerCallback callback);
  void AddAfterBackward(LayerCallback callback);

  // Describes the origin of a NaN or infinity in the last forward pass: a parameter, or the first
  // layer and blob when the pass is repeated on the same batch (data layers of databases and lists
  // repeat theirs; others continue). Empty if all values are finite. For error messages only:
  // running statistics change.
  std::string DescribeFirstNonFinite();

  // The result of copying weights for one layer.
  struct WeightTransfer {
    std::string layer;
    enum Outcome {
      kCopied,   // values from the file
      kKept,     // a layer of this net that the source does not have
      kIgnored,  // a layer of the source that this net does not have
    } outcome;
    int blobs = 0;
    int64_t values = 0;
  };
  // Copies parameters by layer name. Layers that this net lacks are skipped with a log line; blobs
  // must match (leading 1s of old 4-D blobs are allowed). Throws InvalidArgument if no layer takes
  // any. Returns one entry for each layer with parameters; those of the source come first.
  std::vector<WeightTransfer> CopyTrainedLayersFrom(const NetParameter& trained);
  // Reads a .caffemodel, or HDF5 if the name ends in ".h5".
  std::vector<WeightTransfer> CopyTrainedLayersFrom(const std::string& file);
  // Reads HDF5 whatever the file's name.
  std::vector<WeightTransfer> CopyTrainedLayersFromHDF5(const std::string& file);
  // Uses the other net's parameter memory for layers of equal name. Throws InvalidArgument if such
  // layers differ in the number or counts of their parameters.
  void ShareTrainedLayersWith(const Net& other);
  // Builds a net with the same definition and the current input shapes that shares our weights, for
  // use in another thread. On the CPU it also shares what kernels derive from the weights
  // (reordered weights, folded normalisations), so that only activations take more memory. Weights
  // may be changed, for all nets that share them, while none of them runs. Throws InvalidArgument
  // for a net of phase TRAIN, or of another device than Caffe::mode() names.
  std::unique_ptr<Net> Share();
  // Writes the definition with the parameters' values.
  void ToProto(NetParameter* param, bool write_diff = false) const;
  void ToHDF5(const std::string& file, bool write_diff = false) const;
  // Writes ToProto() as a .caffemodel, the complete file or nothing. Throws IoError.
  void Save(const std::string& file, bool write_diff = false) const;
  // Writes the forward pass, compiled for the current input shapes, with its weights: the complete
  // file or nothing, for the runtime library (cortado/runtime.h). Steps are fused and, in precision
  // INT8, computed in 8 bits whatever this net's options are. Throws InvalidArgument for a net of
  // phase TRAIN or of a GPU, Unsupported, naming the layer, if only this library can run one (its
  // data layer, SSD's detections), and IoError.
  void SaveProgram(const std::string& file);
  // The definition that was compiled: upgraded, and filtered by its state. Contains weights only if
  // the original did.
  const NetParameter& definition() const;
  const std::string& name() const;
  Phase phase() const;
  uint64_t seed() const;
  const std::vector<std::string>& layer_names() const;
  const std::vector<std::shared_ptr<Layer>>& layers() const;
  // In order of first appearance.
  const std::vector<std::string>& blob_names() const;
  const std::vector<std::shared_ptr<Blob>>& blobs() const;
  // The blobs that layer i reads and writes, as indices into blobs().
  const std::vector<int>& bottom_ids(int layer) const;
  const std::vector<int>& top_ids(int layer) const;
  bool has_blob(const std::string& name) const;
  // Throws InvalidArgument naming the nearest blob. In a reuse plan, a blob that is not kept has a
  // shape but no memory of its own: accessing its values throws InvalidArgument.
  std::shared_ptr<Blob> blob_by_name(const std::string& name) const;
  bool has_layer(const std::string& name) const;
  std::shared_ptr<Layer> layer_by_name(const std::string& name) const;
  // Parameter blobs of one layer.
  const std::vector<std::shared_ptr<Blob>>& layer_params(int layer) const;
  const std::vector<std::shared_ptr<Blob>>& layer_params(const std::string& layer) const;

  // A parameter that owns its memory, in layer order: what a solver updates.
  struct LearnableParam {
    std::shared_ptr<Blob> blob;
    std::string name;  // "conv1.0"
    float lr_mult = 1, decay_mult = 1;
    bool has_gradient = true;
    // Type in which the layer stores gradients of activations (backward_type).
    DType backward_type = DType::kFloat;
  };
  const std::vector<LearnableParam>& learnable_params() const;

  const std::vector<std::string>& input_names() const;
  const std::vector<std::string>& output_names() const;
  const std::vector<Blob*>& input_blobs() const;
  const std::vector<Blob*>& output_blobs() const;
  // Loss weight of an output blob (0 if it is not a loss).
  float loss_weight(const std::string& blob) const;
  bool layer_need_backward(int layer) const;
  // The compiled plan, for reports.
  const Graph& graph() const;
  // Bytes of parameters (with gradients if they exist) and of kept blobs.
  int64_t persistent_bytes() const;
  // Bytes that weights take now: parameters that are in memory, and the copies that steps read.
  int64_t weight_bytes() const;
  // false for a net that was only compiled (NetOptions::allocate).
  bool is_allocated() const;

  // Keeps the layers whose include and exclude rules match the state.
  static NetParameter FilterNet(const NetParameter& param);
  static bool StateMeetsRule(const NetState& state, const NetStateRule& rule);

 private:
  friend class TrainingNet;  // what solvers need
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace caffe
