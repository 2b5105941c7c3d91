#include "caffe/data/batch_buffer.hpp"

#include <utility>

namespace caffe::data {

void BatchBuffer::ChangeLayout(Layout layout) {
  if (batch.data == nullptr || batch.layout == layout) return;
  AlignedArray<float> changed;
  changed.Reserve(static_cast<size_t>(batch.data_shape.count()));
  CopyTensor({{batch.data_shape, DType::kFloat, batch.layout}, data.get()},
             {{batch.data_shape, DType::kFloat, layout}, changed.get()});
  data = std::move(changed);
  batch.data = data.get();
  batch.layout = layout;
}

}  // namespace caffe::data
