#include "caffe/data/batch_buffer.hpp"

#include <utility>

namespace caffe::data {

void BatchBuffer::ChangeLayout(Layout layout) {
  if (batch.data == nullptr || batch.layout == layout) return;
  other_data.Reserve(static_cast<size_t>(batch.data_shape.count()));
  CopyTensor({{batch.data_shape, DType::kFloat, batch.layout}, data.get()},
             {{batch.data_shape, DType::kFloat, layout}, other_data.get()});
  std::swap(data, other_data);
  batch.data = data.get();
  batch.layout = layout;
}

}  // namespace caffe::data
