#include "caffe/cpu/onednn.hpp"

#include <algorithm>
#include <functional>
#include <numeric>
#include <sstream>

#include "caffe/core/signals_held.hpp"
#include "caffe/cpu/processor.hpp"

namespace caffe::cpu {

const dnnl::engine& OneDnnEngine() {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

dnnl::stream& OneDnnStream() {
  static thread_local dnnl::stream stream(OneDnnEngine());
  return stream;
}

namespace {

std::string Version() {
  const dnnl_version_t& version = *dnnl::version();
  return StrCat("oneDNN ", version.major, ".", version.minor, ".", version.patch);
}

const DescriptionPart version(Version);

}  // namespace

std::string OneDnnName() {
  std::ostringstream set;
  set << std::hex << dnnl_get_effective_cpu_isa();
  return StrCat(Version(), ", instruction set 0x", set.str());
}

bool OneDnnComputes(DType dtype) {
  static const bool has_bfloat16 = MultipliesBFloat16();
  return dtype == DType::kFloat || (dtype == DType::kBFloat16 && has_bfloat16);
}

std::vector<Signature> OneDnnSignatures() {
  std::vector<Signature> signatures = {{DType::kFloat, DType::kFloat}};
  if (OneDnnComputes(DType::kBFloat16)) signatures.push_back({DType::kBFloat16, DType::kFloat});
  return signatures;
}

bool OneDnnMultiplies8Bits() {
  const unsigned isa = dnnl_get_effective_cpu_isa();  // a set has the bits of all sets it includes
  const auto has = [&](unsigned set) { return (isa & set) == set; };
  return has(dnnl_cpu_isa_avx512_core_vnni) || has(dnnl_cpu_isa_avx2_vnni);
}

bool OneDnnAddsLast() {
  return (dnnl_get_effective_cpu_isa() & dnnl_cpu_isa_avx512_core) == dnnl_cpu_isa_avx512_core;
}

bool OneDnnMultipliesTiles() {
  const unsigned isa = dnnl_get_effective_cpu_isa();
  return (isa & dnnl_cpu_isa_avx512_core_amx) == dnnl_cpu_isa_avx512_core_amx;
}

bool OneDnnFuses(const ops::Epilogue& epilogue) {
  using Kind = ops::Pointwise::Kind;
  const bool adds = !epilogue.empty() && epilogue[0].kind == Kind::kAdd;
  const std::span rest(epilogue.begin() + (adds ? 1 : 0), epilogue.end());
  return rest.empty() || (rest.size() == 1 && rest[0].kind == Kind::kRelu);
}

dnnl::memory::data_type OneDnnType(DType dtype) {
  using Type = dnnl::memory::data_type;
  switch (dtype) {
    case DType::kFloat:
      return Type::f32;
    case DType::kBFloat16:
      return Type::bf16;
    case DType::kUInt8:
      return Type::u8;
    case DType::kInt8:
      return Type::s8;
    default:
      throw InternalError(StrCat("oneDNN: no type for ", Name(dtype)));
  }
}

dnnl::memory::desc OneDnnDesc(const TensorDesc& desc) {
  return OneDnnDesc(desc, OneDnnType(desc.dtype));
}

dnnl::memory::desc OneDnnDesc(const TensorDesc& desc, dnnl::memory::data_type type) {
  const std::vector<int64_t>& dims = desc.shape.dims();
  dnnl::memory::dims strides(dims.size(), 1);
  if (desc.layout == Layout::kPlain) {
    for (int axis = static_cast<int>(dims.size()) - 2; axis >= 0; --axis) {
      strides[axis] = strides[axis + 1] * dims[axis + 1];
    }
  } else {
    strides = {dims[1] * dims[2] * dims[3], 1, dims[3] * dims[1], dims[1]};
  }
  return {dims, type, strides};
}

void OneDnnPrimitive::AddOperand(int dnnl_argument, const dnnl::memory::desc& desc) {
  memories_.emplace_back(desc, OneDnnEngine(), nullptr);
  arguments_.push_back({dnnl_argument, memories_.back().get()});
}

void OneDnnPrimitive::SetOperand(int index, void* data) {
  dnnl::memory& memory = memories_[index];
  if (memory.get_data_handle() != data) memory.set_data_handle(data);
}

void OneDnnPrimitive::Run() {
  const SignalsHeld held;
  const auto status =
      dnnl_primitive_execute(primitive_.get(), OneDnnStream().get(),
                             static_cast<int>(arguments_.size()), arguments_.data());
  CAFFE_ASSERT(status == dnnl_success, "oneDNN status ", static_cast<int>(status));
}

OneDnnPrimitive MakeOneDnnReorder(const dnnl::memory::desc& from, const dnnl::memory::desc& to,
                                  bool accumulates, size_t* scratchpad_bytes) {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (accumulates) {
    dnnl::post_ops post;
    post.append_sum(1.0f);
    attributes.set_post_ops(post);
  }
  const dnnl::reorder::primitive_desc description(OneDnnEngine(), from, OneDnnEngine(), to,
                                                  attributes);
  OneDnnPrimitive primitive{dnnl::reorder(description)};
  primitive.AddOperand(DNNL_ARG_FROM, from);
  primitive.AddOperand(DNNL_ARG_TO, to);
  primitive.AddOperand(DNNL_ARG_SCRATCHPAD, description.scratchpad_desc());
  *scratchpad_bytes = description.scratchpad_desc().get_size();
  return primitive;
}

namespace {

// A tensor in blocks, as both generations describe it.
struct Blocks {
  dnnl::memory::dims dims, padded, strides, sizes, axes;  // of the tensor, and of its inner blocks
  int64_t number_bytes = 0;

  explicit Blocks(const dnnl::memory::desc& desc) {
#if DNNL_VERSION_MAJOR >= 3
    dims = desc.get_dims(), padded = desc.get_padded_dims(), strides = desc.get_strides();
    sizes = desc.get_inner_blks(), axes = desc.get_inner_idxs();
    number_bytes = static_cast<int64_t>(dnnl::memory::data_type_size(desc.get_data_type()));
#else
    dims = desc.dims();
    number_bytes = static_cast<int64_t>(dnnl::memory::data_type_size(desc.data_type()));
    const auto& blocks = desc.data.format_desc.blocking;
    padded.assign(desc.data.padded_dims, desc.data.padded_dims + desc.data.ndims);
    strides.assign(blocks.strides, blocks.strides + desc.data.ndims);
    sizes.assign(blocks.inner_blks, blocks.inner_blks + blocks.inner_nblks);
    axes.assign(blocks.inner_idxs, blocks.inner_idxs + blocks.inner_nblks);
#endif
  }
  int64_t count() const {
    return std::accumulate(padded.begin(), padded.end(), int64_t{1}, std::multiplies<>());
  }
  int64_t BlockOf(int axis) const {
    int64_t size = 1;
    for (size_t i = 0; i < sizes.size(); ++i) size *= axes[i] == axis ? sizes[i] : 1;
    return size;
  }
};

}  // namespace

std::string OneDnnOrder(const dnnl::memory::desc& desc) {
  const Blocks blocks(desc);
  std::string order = StrCat("oneDNN ", blocks.number_bytes, " bytes");
  const auto list = [&](std::string_view name, const dnnl::memory::dims& numbers) {
    order += StrCat(", ", name);
    for (const int64_t number : numbers) order += StrCat(" ", number);
  };
  list("padded", blocks.padded);
  list("strides", blocks.strides);
  list("blocks", blocks.sizes);
  list("of axes", blocks.axes);
  return StrCat(order, ", ", desc.get_size(), " in all");
}

int64_t OneDnnPanelColumns(const dnnl::memory::desc& desc) {
  const Blocks blocks(desc);
  const dnnl::memory::dims& sizes = blocks.sizes;
  const bool has_pairs = blocks.number_bytes == 2;
  const dnnl::memory::dims axes =
      has_pairs ? dnnl::memory::dims{0, 1, 0} : dnnl::memory::dims{0, 1};
  if (blocks.dims.size() != 2 || blocks.axes != axes || (has_pairs && sizes[2] != 2)) return 0;
  const int64_t columns = sizes[1], unit = blocks.BlockOf(0);
  const bool is_whole = blocks.strides[0] == unit * columns &&
                        blocks.strides[1] == blocks.padded[0] * columns && sizes[0] == 16;
  return is_whole ? columns : 0;
}

std::optional<RowPacking> PackOneDnnRows(const dnnl::memory::desc& plain,
                                         const dnnl::memory::desc& packed, int axis) {
  const Blocks from(plain), to(packed);
  const int64_t unit = to.BlockOf(axis), rows = from.padded[axis], count = to.count();
  const int64_t unit_count = to.strides[axis];  // numbers of `unit` rows, if they are contiguous
  // More bytes hold sums for signed data.
  if (rows % unit != 0 || to.padded[axis] != rows || unit_count * (rows / unit) != count ||
      static_cast<int64_t>(packed.get_size()) != count * to.number_bytes) {
    return std::nullopt;
  }
  dnnl::memory::dims part = from.dims;
  part[axis] = unit;
  const dnnl::memory::dims begin(part.size(), 0);
  auto reorder = std::make_shared<ReorderStep>(plain.submemory_desc(part, begin),
                                               packed.submemory_desc(part, begin),
                                               /*accumulates=*/false);
  RowPacking packing{.unit = unit, .workspace_bytes = reorder->scratchpad_bytes()};
  const int64_t from_step = from.strides[axis] * unit * from.number_bytes;
  const int64_t to_step = unit_count * to.number_bytes;
  packing.pack = [=](const void* some, int64_t first, int64_t number, void* whole,
                     void* workspace) {
    for (int64_t i = 0; i < number / unit; ++i) {
      reorder->Run(const_cast<char*>(static_cast<const char*>(some)) + i * from_step,
                   static_cast<char*>(whole) + (first / unit + i) * to_step, workspace);
    }
  };
  return packing;
}

namespace {

// Row-major matrices, or the transposes of such that are read from their memory.
dnnl::memory::desc MatrixDesc(int64_t rows, int64_t columns, bool is_transposed, DType dtype,
                              const dnnl::memory::dims& batch, const dnnl::memory::dims& steps) {
  dnnl::memory::dims extents, strides;
  for (size_t k = 0; k < batch.size(); ++k) {
    extents.push_back(steps[k] == 0 ? 1 : batch[k]);
    strides.push_back(std::max<int64_t>(steps[k], 1) * rows * columns);
  }
  extents.insert(extents.end(), {rows, columns});
  strides.insert(strides.end(), {is_transposed ? 1 : columns, is_transposed ? rows : 1});
  return {extents, OneDnnType(dtype), strides};
}

}  // namespace

OneDnnProduct::OneDnnProduct(const Shape& shape, bool accumulates) : has_bias_(shape.has_bias) {
  const auto a =
      MatrixDesc(shape.rows, shape.inner, shape.transpose_a, shape.a, shape.batch, shape.a_steps);
  plain_b_ = MatrixDesc(shape.inner, shape.columns, shape.transpose_b, shape.b, shape.batch,
                        shape.b_steps);
  const dnnl::memory::desc any_b({shape.inner, shape.columns}, OneDnnType(shape.b),
                                 dnnl::memory::format_tag::any);
  const dnnl::memory::desc& b = shape.b_in_own_order ? any_b : plain_b_;
  const auto bias = MatrixDesc(1, shape.columns, false, DType::kFloat, shape.batch,
                               dnnl::memory::dims(shape.batch.size()));
  const auto c =
      MatrixDesc(shape.rows, shape.columns, false, shape.result, shape.batch, shape.c_steps);
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  dnnl::post_ops post;
  if (shape.factor != 1) AppendEltwise(dnnl::algorithm::eltwise_linear, shape.factor, 0, &post);
  if (accumulates) post.append_sum(1.0f);
  attributes.set_post_ops(post);
  const auto describe = [&](const auto&... operands) {
    return DescribeOneDnn<dnnl::matmul>(attributes, operands...);
  };
  const dnnl::matmul::primitive_desc description =
      has_bias_ ? describe(a, b, bias, c) : describe(a, b, c);
  workspace_bytes_ = description.scratchpad_desc().get_size();
  primitive_ = OneDnnPrimitive(dnnl::matmul(description));
  primitive_.AddOperand(DNNL_ARG_SRC, a);
  packed_b_ = description.weights_desc();
  primitive_.AddOperand(DNNL_ARG_WEIGHTS, packed_b_);
  primitive_.AddOperand(DNNL_ARG_DST, c);
  primitive_.AddOperand(DNNL_ARG_SCRATCHPAD, description.scratchpad_desc());
  if (has_bias_) primitive_.AddOperand(DNNL_ARG_BIAS, bias);
}

void OneDnnProduct::Run(void* a, void* b, void* bias, void* c, void* workspace) {
  primitive_.SetOperand(0, a);
  primitive_.SetOperand(1, b);
  primitive_.SetOperand(2, c);
  primitive_.SetOperand(3, workspace);
  if (has_bias_) primitive_.SetOperand(4, bias);
  primitive_.Run();
}

}  // namespace caffe::cpu
