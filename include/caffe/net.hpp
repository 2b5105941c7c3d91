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
  // true: every named blob is readable and writable between any two layers, Forward and Backward
  // may be partial, gradients add up until ClearParamDiffs. false: the plan of `caffe train`, with
  // fused steps and reused memory; only inputs, outputs and parameters are readable.
  bool keep_all = true;
  // false leaves out everything that only backward needs.
  bool with_backward = true;
  // Seed of fillers, dropout and data order; unset: Caffe::set_random_seed or the system's.
  std::optional<uint64_t> seed;
  // Optional passes to leave out; CAFFE_DISABLE_PASSES (comma list) adds to it.
  std::vector<std::string> disabled_passes;
  // Records that each data layer has delivered in the run that is resumed.
  std::map<std::string, uint64_t> delivered_records;
  // The GPU's number, while Caffe::mode() is GPU; Caffe::device() if there is none.
  std::optional<int> gpu;
  // Of the ranks that work on one net: data layers give each its own part of the data.
  int rank = 0, ranks = 1;
  // Data layers end each epoch with a smaller batch where their batch size does not divide the
  // number of records, so that a pass over the data meets each record once; see EpochBatches.
  bool whole_epochs = false;
  // Storage and arithmetic of a net whose definition has no default_* fields; layers' own fields
  // still win.
  Precision precision = FP32;
  // File of `caffe calibrate`, whose ranges precision INT8 and FAKE_INT8 need; empty: the
  // definition's field.
  std::string calibration = {};
  // What a program for another machine is compiled from: precision INT8 computes in 8 bits on
  // processors, too, where floats are faster, and no step relies on what this one's kernels can do.
  bool for_any_processor = false;
  // Products of floats keep all their bits, where GPUs would round factors to TF32; results are the
  // same bits on each run. NetParameter's fields of these names switch them on as well.
  bool strict_fp32 = false, deterministic = false;
  // Leaves out, with a warning each: fields of the file that the schema does not
  // have, and layers of unknown type with those that need their tops.
  bool lenient = false;
  // Most bytes that training may take: parameters, gradients, `solver_states` tensors of the
  // solver's for each parameter, inputs and outputs, activations and workspace. Results of forward
  // are then computed again in backward, as many as that needs, with the same numbers. 0: no limit.
  // InvalidArgument where even the smallest plan takes more, and for a keep-all net.
  int64_t memory_limit = 0;
  int solver_states = 0;
  // The prototxt of the net, if it came from one: errors of a layer, when the net is made and when
  // it runs, begin with the file, line and column that define the layer.
  std::string file;
  // false: compile without creating parameters or starting readers beyond their first record
  // (`caffe plan`).
  bool allocate = true;
  // A chip that need not be there ("H200"): the net is planned for it whatever Caffe::mode() is.
  // Only without `allocate`.
  std::string described_device;
};

// A network of one phase, compiled: its layers, its blobs and its parameters. Layers and blobs are
// numbered from 0 in the order of layer_names() and blob_names().
//
// One thread at a time: a second one gets InvalidArgument. Everything throws: InvalidArgument for a
// wrong definition or name (with the layer's name and the nearest valid one), IoError for files,
// Unsupported for what this build lacks.
class CAFFE_EXPORT Net {
 public:
  // `param` may hold both phases; it is filtered by its state. Compiles at once.
  explicit Net(const NetParameter& param, const NetOptions& options = {});
  // From a prototxt, for a phase, level and stages.
  Net(const std::string& file, Phase phase, int level = 0,
      const std::vector<std::string>& stages = {}, const NetOptions& options = {});
  ~Net();
  Net(const Net&) = delete;
  Net& operator=(const Net&) = delete;

  // Runs all layers; returns the net's outputs (tops that nothing reads) in alphabetical order.
  // `loss` receives the weighted sum of the losses.
  const std::vector<Blob*>& Forward(float* loss = nullptr);
  // Runs layers start to end, both included, of a keep-all net; returns their part of the loss.
  // Throws InvalidArgument for another net, for layers that are not there, and where start is not 0
  // after an input was reshaped.
  float ForwardFromTo(int start, int end);
  // Gradients of all parameters that learn. In a keep-all net they start from the diffs of the
  // output blobs (which hold the loss weights) and are added to the parameters' diffs.
  void Backward();
  // Layers start down to end, both included, of a keep-all net.
  void BackwardFromTo(int start, int end);
  // Forward and Backward as one run; returns the weighted sum of the losses.
  float ForwardBackward();
  // The same without waiting for a device: AwaitLoss() waits for the oldest pass whose loss has not
  // been asked for yet and returns it. Few passes should be on their way at a time.
  void LaunchForwardBackward();
  float AwaitLoss();
  // After an input blob was reshaped: compiles for the new shapes. Forward does it by itself.
  void Reshape();
  // Sets the parameters' gradients to 0.
  void ClearParamDiffs();
  // Called in the running thread around each layer, with its number; the layers then run one by
  // one, so blobs can be read and changed in between. An exception ends the run and reaches its
  // caller. Keep-all nets only (InvalidArgument).
  using LayerCallback = std::function<void(int layer)>;
  void AddBeforeForward(LayerCallback callback);
  void AddAfterForward(LayerCallback callback);
  void AddBeforeBackward(LayerCallback callback);
  void AddAfterBackward(LayerCallback callback);

  // Where a NaN or infinity of the last forward pass came from: a parameter, or the first layer and
  // blob when the pass is made again on the same batch (data layers of databases and lists repeat
  // theirs; others go on). Empty when all is finite. For error messages: statistics move on.
  std::string DescribeFirstNonFinite();

  // What became of one layer when weights were copied.
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
  // must fit (leading 1s of old 4-D blobs are allowed). Throws InvalidArgument where no layer takes
  // any. Returns one entry for each layer with parameters, of the source first.
  std::vector<WeightTransfer> CopyTrainedLayersFrom(const NetParameter& trained);
  // A .caffemodel, or HDF5 when the name ends in ".h5".
  std::vector<WeightTransfer> CopyTrainedLayersFrom(const std::string& file);
  // HDF5 whatever the file's name.
  std::vector<WeightTransfer> CopyTrainedLayersFromHDF5(const std::string& file);
  // Uses the other net's parameter memory for layers of equal name. Throws InvalidArgument where
  // they have other numbers or counts of parameters.
  void ShareTrainedLayersWith(const Net& other);
  // Another net of this definition, for the shapes that the inputs have now, which reads the same
  // weights: for a thread of its own. On the CPU it also shares what kernels make of the weights
  // (their own order, folded normalisations), so that only activations take more memory. Weights
  // may be changed, for all nets that share them, while none of them runs. Throws InvalidArgument
  // for a net of phase TRAIN, or of another device than Caffe::mode() names.
  std::unique_ptr<Net> Share();
  // The definition with the parameters' values.
  void ToProto(NetParameter* param, bool write_diff = false) const;
  void ToHDF5(const std::string& file, bool write_diff = false) const;
  // ToProto as a .caffemodel, whole or not at all. Throws IoError.
  void Save(const std::string& file, bool write_diff = false) const;
  // The forward pass, compiled for the shapes that the inputs have now, with its weights: a file
  // for the runtime library (cortado/runtime.h), whole or not at all. Steps are fused and, in
  // precision INT8, computed in 8 bits whatever this net's options are. Throws InvalidArgument for
  // a net of phase TRAIN or of a GPU, Unsupported, naming the layer, for one that only this library
  // can run (its data layer, SSD's detections), and IoError.
  void SaveProgram(const std::string& file);
  // What was compiled: upgraded, and filtered by its state. Without weights, unless it came with
  // them.
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
  // Throws InvalidArgument naming the nearest blob. In a reuse plan a blob that is not kept has its
  // shape but no memory of its own: reading or writing its numbers throws InvalidArgument.
  std::shared_ptr<Blob> blob_by_name(const std::string& name) const;
  bool has_layer(const std::string& name) const;
  std::shared_ptr<Layer> layer_by_name(const std::string& name) const;
  // Parameter blobs of one layer.
  const std::vector<std::shared_ptr<Blob>>& layer_params(int layer) const;
  const std::vector<std::shared_ptr<Blob>>& layer_params(const std::string& layer) const;

  // Parameters that own their memory, in layer order: what a solver updates.
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
  // Loss weight of an output blob (0 when it is no loss).
  float loss_weight(const std::string& blob) const;
  bool layer_need_backward(int layer) const;
  // The compiled plan, for reports.
  const Graph& graph() const;
  // Bytes of parameters (with gradients where they exist) and of kept blobs.
  int64_t persistent_bytes() const;
  // false for a net that was only compiled (NetOptions::allocate).
  bool is_allocated() const;

  // Keeps the layers whose include/exclude rules the state meets.
  static NetParameter FilterNet(const NetParameter& param);
  static bool StateMeetsRule(const NetState& state, const NetStateRule& rule);

 private:
  friend class TrainingNet;  // what solvers need
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace caffe
