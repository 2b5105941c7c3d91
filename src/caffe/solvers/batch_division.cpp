#include "caffe/solvers/batch_division.hpp"

#include <google/protobuf/message.h>

#include <vector>

#include "caffe/error.hpp"

namespace caffe {
namespace {

// Returns the first set field with a number in [first, last]; "" if there is none.
std::string SetField(const google::protobuf::Message& message, int first, int last) {
  std::vector<const google::protobuf::FieldDescriptor*> fields;
  message.GetReflection()->ListFields(message, &fields);
  for (const google::protobuf::FieldDescriptor* field : fields) {
    if (first <= field->number() && field->number() <= last) return field->name();
  }
  return "";
}

// The field numbers are those of caffe.proto, which names their origin.
std::string NvcaffeField(const SolverParameter& solver, const NetParameter& net) {
  if (std::string field = SetField(solver, 41, 56); !field.empty()) return field;
  if (std::string field = SetField(net, 11, 20); !field.empty()) return field;
  for (const LayerParameter& layer : net.layer()) {
    if (std::string field = SetField(layer, 145, 150); !field.empty()) return field;
    if (std::string field = SetField(layer.data_param(), 11, 16); !field.empty()) return field;
  }
  return "";
}

template <typename Options>
void Divide(int workers, const std::string& layer, Options* options) {
  const int64_t size = options->batch_size();
  Require(size >= workers, "layer '", layer, "': batch_size ", size, " is that of all ", workers,
          " workers together, so each would have no record; raise it, or use fewer workers");
  options->set_batch_size(static_cast<uint32_t>((size + workers - 1) / workers));
}

}  // namespace

std::string WhyBatchIsOfAll(const SolverParameter& solver, const NetParameter& net) {
  const Dialect dialect = solver.dialect() != AUTO ? solver.dialect() : net.dialect();
  if (dialect == BVLC) return "";
  if (dialect == NVCAFFE) return "dialect: NVCAFFE";
  return NvcaffeField(solver, net);
}

void DivideBatchSizes(int workers, NetParameter* net) {
  for (LayerParameter& layer : *net->mutable_layer()) {
    if (layer.data_param().has_batch_size()) {
      Divide(workers, layer.name(), layer.mutable_data_param());
    }
    if (layer.has_image_data_param()) {
      Divide(workers, layer.name(), layer.mutable_image_data_param());
    }
    if (layer.has_hdf5_data_param()) {
      Divide(workers, layer.name(), layer.mutable_hdf5_data_param());
    }
    if (layer.has_window_data_param()) {
      Divide(workers, layer.name(), layer.mutable_window_data_param());
    }
  }
}

}  // namespace caffe
