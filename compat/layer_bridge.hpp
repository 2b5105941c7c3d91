// LayerBridge: runs a layer that was written for Caffe in a compiled net.
#pragma once

#include <memory>
#include <vector>

#include "caffe/blob.hpp"
#include "caffe/compat/caffe/layer.hpp"
#include "caffe/error.hpp"
#include "caffe/layer.hpp"

namespace caffe::bvlc {

// Runs the user's code; adds the method's name to errors. The net adds the layer.
template <typename Fn>
decltype(auto) InMethod(const char* method, Fn&& fn) {
  try {
    return WithContext(StrCat("in ", method), std::forward<Fn>(fn));
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    throw InvalidArgument(StrCat("in ", method, ": ", error.what()));
  }
}

template <typename Dtype>
class LayerBridge final : public ::caffe::Layer {
 public:
  LayerBridge(const LayerParameter& param, std::shared_ptr<bvlc::Layer<Dtype>> object);

  LayerTraits traits() const override;
  void Prepare(const DataPlace& place) override;
  std::vector<Shape> InferTopShapes(const std::vector<Shape>& bottoms) const override;
  std::vector<ParamDeclaration> Params(const std::vector<Shape>& bottoms) const override;
  void EmitForward(GraphBuilder& graph) const override;
  void EmitBackward(GraphBuilder& graph) const override;
  bool AllowForceBackward(int bottom) const override;

  // The user's object.
  const std::shared_ptr<bvlc::Layer<Dtype>>& object() const;
  // Makes the object's blobs show the net's parameters, for callers that read them between passes.
  void ShowParams(const std::vector<std::shared_ptr<::caffe::Blob>>& params) const;

  struct Instance;

 private:
  void SetUp(const std::vector<Shape>& bottoms) const;
  void CheckLossWeights() const;
  int NumTops() const;
  bool IsLoss() const;

  std::shared_ptr<Instance> instance_;
};

}  // namespace caffe::bvlc
