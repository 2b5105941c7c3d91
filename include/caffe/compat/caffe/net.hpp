// Net<Dtype>: a network, with Caffe's method names.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "blob.hpp"
#include "caffe/proto/caffe.pb.h"
#include "common.hpp"
#include "layer.hpp"

CAFFE_BVLC_BEGIN
// The compiled net that a Net wraps.
class NetAccess;

// Compiled so that every blob can be read and written between any two layers (keep_all). Layers are
// numbered, and blobs named, as in the prototxt: fan-out needs no Split layers. Errors throw
// caffe::Error, which is a std::runtime_error.
template <typename Dtype>
class Net {
 public:
  explicit Net(const NetParameter& param);
  explicit Net(const string& param_file, Phase phase, const int level = 0,
               const vector<string>* stages = NULL);
  // For the library.
  explicit Net(std::unique_ptr<NetAccess> access);
  virtual ~Net();

  const vector<Blob<Dtype>*>& Forward(Dtype* loss = NULL);
  const vector<Blob<Dtype>*>& ForwardPrefilled(Dtype* loss = NULL) { return Forward(loss); }
  // Runs layers start to end, both included; returns their part of the loss.
  Dtype ForwardFromTo(int start, int end);
  Dtype ForwardFrom(int start);
  Dtype ForwardTo(int end);
  // Copies `bottom` into the inputs first.
  const vector<Blob<Dtype>*>& Forward(const vector<Blob<Dtype>*>& bottom, Dtype* loss = NULL);
  void ClearParamDiffs();
  void Backward();
  void BackwardFromTo(int start, int end);
  void BackwardFrom(int start);
  void BackwardTo(int end);
  Dtype ForwardBackward();
  // Compiles for the inputs' new shapes. Forward does it automatically.
  void Reshape();
  // data -= diff for each learnable parameter.
  void Update();
  // Does nothing: parameters with the same name share memory from construction on.
  void ShareWeights() {}
  void ShareTrainedLayersWith(const Net* other);
  void CopyTrainedLayersFrom(const NetParameter& param);
  // HDF5 when the name ends in ".h5".
  void CopyTrainedLayersFrom(const string& trained_filename);
  void CopyTrainedLayersFromBinaryProto(const string& trained_filename);
  void CopyTrainedLayersFromHDF5(const string& trained_filename);
  void ToProto(NetParameter* param, bool write_diff = false) const;
  void ToHDF5(const string& filename, bool write_diff = false) const;

  const string& name() const;
  const vector<string>& layer_names() const;
  const vector<string>& blob_names() const;
  const vector<shared_ptr<Blob<Dtype>>>& blobs() const { return blobs_; }
  // A layer written for Caffe is the object that the net runs; any other exposes the parameters and
  // options of a layer of Cortado (BuiltinLayer).
  const vector<shared_ptr<Layer<Dtype>>>& layers() const { return layers_; }
  Phase phase() const;
  const vector<vector<Blob<Dtype>*>>& bottom_vecs() const { return bottom_vecs_; }
  const vector<vector<Blob<Dtype>*>>& top_vecs() const { return top_vecs_; }
  const vector<int>& top_ids(int i) const;
  const vector<int>& bottom_ids(int i) const;
  const vector<vector<bool>>& bottom_need_backward() const { return bottom_need_backward_; }
  // One per blob.
  const vector<Dtype>& blob_loss_weights() const { return blob_loss_weights_; }
  const vector<bool>& layer_need_backward() const { return layer_need_backward_; }
  // The parameters of all layers; shared ones appear once for each layer that uses them.
  const vector<shared_ptr<Blob<Dtype>>>& params() const { return params_; }
  // The parameters that own their memory.
  const vector<Blob<Dtype>*>& learnable_params() const { return learnable_params_; }
  const vector<float>& params_lr() const { return params_lr_; }
  const vector<bool>& has_params_lr() const { return has_params_lr_; }
  const vector<float>& params_weight_decay() const { return params_weight_decay_; }
  const vector<bool>& has_params_decay() const { return has_params_decay_; }
  const map<string, int>& param_names_index() const { return param_names_index_; }
  // For each of params(): -1, or the index in params() of the parameter whose memory it shares.
  const vector<int>& param_owners() const { return param_owners_; }
  const vector<string>& param_display_names() const { return param_display_names_; }
  int num_inputs() const { return static_cast<int>(input_blobs_.size()); }
  int num_outputs() const { return static_cast<int>(output_blobs_.size()); }
  const vector<Blob<Dtype>*>& input_blobs() const { return input_blobs_; }
  const vector<Blob<Dtype>*>& output_blobs() const { return output_blobs_; }
  const vector<int>& input_blob_indices() const { return input_blob_indices_; }
  const vector<int>& output_blob_indices() const { return output_blob_indices_; }
  bool has_blob(const string& blob_name) const;
  // Returns null, and logs a warning, if there is no such blob.
  Shared<Blob<Dtype>> blob_by_name(const string& blob_name) const;
  bool has_layer(const string& layer_name) const;
  Shared<Layer<Dtype>> layer_by_name(const string& layer_name) const;

  // Logs the mean absolute value of each layer's tops and of the gradients as they are computed.
  void set_debug_info(const bool value) { debug_info_ = value; }

  // Keeps the layers whose include and exclude rules match the state of `param`.
  static void FilterNet(const NetParameter& param, NetParameter* param_filtered);
  static bool StateMeetsRule(const NetState& state, const NetStateRule& rule,
                             const string& layer_name);

  // Called around each layer, with its number.
  class Callback {
   public:
    virtual ~Callback() {}

   protected:
    virtual void run(int layer) = 0;

    friend class Net;
  };
  const vector<Callback*>& before_forward() const { return before_forward_; }
  void add_before_forward(Callback* value) { before_forward_.push_back(value); }
  const vector<Callback*>& after_forward() const { return after_forward_; }
  void add_after_forward(Callback* value) { after_forward_.push_back(value); }
  const vector<Callback*>& before_backward() const { return before_backward_; }
  void add_before_backward(Callback* value) { before_backward_.push_back(value); }
  const vector<Callback*>& after_backward() const { return after_backward_; }
  void add_after_backward(Callback* value) { after_backward_.push_back(value); }

 private:
  void ShowBlobs();
  void ShowLayers();
  void ShowParams();
  void ListenOnce();
  int last_layer() const { return static_cast<int>(layers_.size()) - 1; }

  std::unique_ptr<NetAccess> access_;
  vector<shared_ptr<Layer<Dtype>>> layers_;
  vector<shared_ptr<Blob<Dtype>>> blobs_, params_;
  vector<vector<Blob<Dtype>*>> bottom_vecs_, top_vecs_;
  vector<vector<bool>> bottom_need_backward_;
  vector<Dtype> blob_loss_weights_;
  vector<bool> layer_need_backward_;
  vector<Blob<Dtype>*> learnable_params_, input_blobs_, output_blobs_;
  vector<int> input_blob_indices_, output_blob_indices_, param_owners_;
  vector<float> params_lr_, params_weight_decay_;
  vector<bool> has_params_lr_, has_params_decay_;
  vector<string> param_display_names_;
  map<string, int> param_names_index_;
  vector<Callback*> before_forward_, after_forward_, before_backward_, after_backward_;
  bool listens_ = false, debug_info_ = false;

  DISABLE_COPY_AND_ASSIGN(Net);
};

extern template class Net<float>;
extern template class Net<double>;

CAFFE_BVLC_END
