// Writes a random net, layer by layer, and keeps track of its blobs.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "caffe/error.hpp"
#include "caffe/layer.hpp"
#include "caffe/proto/caffe.pb.h"
#include "tests/fuzz/dag/random_numbers.hpp"

namespace caffe::fuzz {

// A blob that later layers may read.
struct KnownBlob {
  std::string name;
  Shape shape;
  int batch = 0;             // number of the Filter that selected its items; 0: all items
  bool is_constant = false;  // computed from constants only
};

// True for blobs of numbers, as opposed to losses, labels and indices.
bool IsData(const KnownBlob& blob);
// "shape { dim: 2 dim: 3 }"
std::string ShapeText(const Shape& shape);

// The layers themselves determine the shapes that they produce, and a layer that refuses its
// bottoms is left out.
class NetWriter {
 public:
  using Accepts = std::function<bool(const KnownBlob&)>;

  explicit NetWriter(uint64_t seed);
  NetParameter Write();

  RandomNumbers& random() { return random_; }
  int items() const { return items_; }
  const KnownBlob& last() const { return blobs_.back(); }

  // Adds a layer with these options. Returns false if it does not fit its bottoms or several
  // workers. `batch`: that of the tops; -1: that of the first bottom.
  bool Add(const std::string& options, const std::vector<KnownBlob>& bottoms,
           const std::vector<std::string>& tops, int batch = -1);
  // Adds an input or constants.
  void AddInput();
  // Adds an input whose name determines its numbers (input_values.hpp).
  KnownBlob NewInput(const std::string& kind, const Shape& shape);
  std::string NewName(const std::string& kind) { return StrCat(kind, next_top_++); }
  std::string NewTop() { return NewName("y"); }
  // The top of a layer that may run in place.
  std::string TopOver(const KnownBlob& bottom) {
    return random_.Chance(0.5) ? bottom.name : NewTop();
  }
  int NextFilter() { return ++num_filters_; }
  // Some gradients may be NaN.
  void ExpectNan() { has_nan_ = true; }
  bool has_nan() const { return has_nan_; }

  // Chooses the last blob more often than the others, so that nets get deep.
  std::optional<KnownBlob> Choose(const Accepts& accepts);
  KnownBlob ChooseAny();
  std::optional<KnownBlob> ChooseImage();
  std::optional<KnownBlob> ChooseWithAxes(int least);
  // Another blob with the same shape and items.
  std::optional<KnownBlob> ChooseLike(const KnownBlob& one);

 private:
  void RunAllOfBackward();
  void ChooseTypes();
  void ChooseLayerTypes(LayerParameter* layer);
  void ChooseParamSpecs(const std::vector<ParamDeclaration>& params, LayerParameter* layer);
  Type AnyType() { return random_.Pick({FLOAT, FLOAT16, BFLOAT16, DOUBLE}); }
  Shape AnyShape();
  void Know(const KnownBlob& blob);

  RandomNumbers random_;
  NetParameter net_;
  int items_ = 1;
  bool is_divisible_ = false;  // several workers may train the net
  bool has_mixed_types_ = false, has_nan_ = false;
  int next_top_ = 0, next_input_ = 0, num_filters_ = 0;
  std::vector<KnownBlob> blobs_;
  std::map<std::string, std::string> owners_;  // names of parameters that may be shared, by shape
};

// A kind of layer, or of a few layers that belong together. Objects of this type register kinds:
//
//   const NetKind lrn("LRN", 5, AddLrn);
//
// A net has a kind in proportion to its weight.
class NetKind {
 public:
  using Adds = void (*)(NetWriter& net);
  NetKind(const std::string& name, int weight, Adds add) { All()[name] = {weight, add}; }

  // Adds one of the kinds.
  static void AddAny(NetWriter& net);

 private:
  // By name, so that a seed gives the same net whatever the order of initialisation.
  static std::map<std::string, std::pair<int, Adds>>& All();
};

}  // namespace caffe::fuzz
