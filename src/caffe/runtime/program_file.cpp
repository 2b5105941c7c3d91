#include "caffe/runtime/program_file.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "caffe/core/bytes.hpp"
#include "caffe/core/cache_lines.hpp"
#include "caffe/core/program_magic.hpp"
#include "caffe/ops/op_form.hpp"

namespace caffe::runtime {
namespace {

// Magic, version, checksum of the rest, size of the head. The head follows, then the constants,
// each padded to whole cache lines.
// Version 2 added 8-bit numbers; programs without them are written as version 1 for older
// libraries.
constexpr uint32_t kOldestVersion = 1, kVersion = 2;
// Offsets that mark a tensor as a constant instead of an activation.
constexpr int64_t kConstant = -1, kConstantRows = -2;
constexpr size_t kPreambleBytes = kProgramMagic.size() + sizeof(uint32_t) + 2 * sizeof(uint64_t);

// Detects damaged files. Takes eight bytes at a time, because weights are large.
uint64_t Checksum(std::span<const char> bytes) {
  uint64_t sum = 0x9e3779b97f4a7c15u;
  const auto mix = [&](uint64_t word) {
    sum = (sum ^ word) * 0xff51afd7ed558ccdu;
    sum ^= sum >> 32;
  };
  size_t at = 0;
  for (; at + 8 <= bytes.size(); at += 8) {
    uint64_t word;
    std::memcpy(&word, bytes.data() + at, 8);
    mix(word);
  }
  uint64_t rest = bytes.size() << 56;
  std::memcpy(&rest, bytes.data() + at, bytes.size() - at);
  mix(rest);
  return sum;
}

void WriteDesc(const TensorDesc& desc, ByteWriter& out) {
  out.Number(static_cast<uint8_t>(desc.dtype));
  out.Number(static_cast<uint8_t>(desc.layout));
  out.Number(static_cast<uint32_t>(desc.shape.num_axes()));
  for (const int64_t extent : desc.shape.dims()) out.Number(extent);
  if (Is8Bit(desc.dtype)) out.Number(desc.scale);
}

DType ReadType(ByteReader& in) {
  const auto number = in.Number<uint8_t>();
  for (const DType dtype : {DType::kDouble, DType::kFloat, DType::kFloat16, DType::kBFloat16,
                            DType::kUInt8, DType::kInt8}) {
    if (number == static_cast<uint8_t>(dtype)) return dtype;
  }
  throw InvalidArgument(
      StrCat("byte ", in.position() - 1, " is ", int{number}, ", which names no type of numbers"));
}

TensorDesc ReadDesc(ByteReader& in) {
  TensorDesc desc;
  desc.dtype = ReadType(in);
  desc.layout = in.Number<bool>() ? Layout::kChannelsLast : Layout::kPlain;
  std::vector<int64_t> dims(in.Count(sizeof(int64_t)));
  for (int64_t& extent : dims) extent = in.Number<int64_t>();
  desc.shape = Shape(std::move(dims));
  Require(desc.shape.count() > 0, "a tensor of ", desc.shape, " has no elements");
  Require(desc.layout == Layout::kPlain || desc.shape.num_axes() == 4, "a tensor of ", desc.shape,
          " is channels-last, which takes 4 axes");
  if (Is8Bit(desc.dtype)) desc.scale = in.Number<float>();
  Require(std::isfinite(desc.scale) && desc.scale > 0, "a tensor of ", desc.shape, " has scale ",
          desc.scale, "; it must be positive");
  return desc;
}

void WriteNumbers(const std::vector<int>& numbers, ByteWriter& out) {
  out.Number(static_cast<uint32_t>(numbers.size()));
  for (const int number : numbers) out.Number(static_cast<int32_t>(number));
}

std::vector<int> ReadNumbers(ByteReader& in, size_t tensors, int least) {
  std::vector<int> numbers(in.Count(sizeof(int32_t)));
  for (int& number : numbers) {
    number = in.Number<int32_t>();
    Require(number >= least && number < static_cast<int>(tensors), "tensor ", number,
            " is named, of ", tensors);
  }
  return numbers;
}

const OpForm& FormOf(const std::string& name, const std::string& where) {
  const OpForm* const form = OpForms::Get().Find(name);
  if (form == nullptr) {
    throw Unsupported(StrCat(where, ": ", name,
                             " is not among the ops that compiled programs run; cut the net before "
                             "it, and compute the rest outside"));
  }
  return *form;
}

OperandCheck::Descs Operands(const std::vector<int>& numbers,
                             const std::vector<ProgramFile::Tensor>& tensors) {
  OperandCheck::Descs descs;
  for (const int number : numbers)
    descs.push_back(number < 0 ? nullptr : &tensors[static_cast<size_t>(number)].desc);
  return descs;
}

// Throws Unsupported for a step that ReadProgram() would refuse.
void WriteStep(const ProgramFile::Step& step, const std::vector<ProgramFile::Tensor>& tensors,
               ByteWriter& out) {
  const std::string name(step.op.name());
  const OpForm& form = FormOf(name, step.where);
  try {
    form.check(step.op, {Operands(step.inputs, tensors), Operands(step.outputs, tensors),
                         step.signature.data});
  } catch (const InvalidArgument& error) {
    throw Unsupported(StrCat(step.where, " runs ", name,
                             " as no compiled program can: ", error.what(),
                             "; cut the net before it, and compute the rest "
                             "outside"));
  }
  out.Text(step.where);
  out.Text(name);
  form.write(step.op, out);
  out.Number(static_cast<uint8_t>(step.signature.data));
  out.Number(static_cast<uint8_t>(step.signature.compute));
  WriteNumbers(step.inputs, out);
  WriteNumbers(step.outputs, out);
}

// An output may be the same memory as an input or apart from it, but must not overlap a part of it:
// no plan does that, and kernels would copy bytes that they have just written.
void RequireWholeOrApart(const ProgramFile::Step& step,
                         const std::vector<ProgramFile::Tensor>& tensors) {
  for (const int output : step.outputs) {
    if (output < 0) continue;
    const ProgramFile::Tensor& to = tensors[static_cast<size_t>(output)];
    for (const int input : step.inputs) {
      if (input < 0) continue;
      const ProgramFile::Tensor& from = tensors[static_cast<size_t>(input)];
      if (from.offset < 0) continue;
      const auto from_end = from.offset + static_cast<int64_t>(from.desc.bytes());
      const auto to_end = to.offset + static_cast<int64_t>(to.desc.bytes());
      Require(to.offset == from.offset || to.offset >= from_end || from.offset >= to_end, "tensor ",
              output, " at bytes ", to.offset, " to ", to_end, " is written over tensor ", input,
              " at ", from.offset, " to ", from_end);
    }
  }
}

ProgramFile::Step ReadStep(const std::vector<ProgramFile::Tensor>& tensors, ByteReader& in) {
  const std::string where = in.Text(), name = in.Text();
  const OpForm& form = FormOf(name, where);
  return WithContext(where, [&] {
    ProgramFile::Step step{where, form.read(in), {}, {}, {}};
    step.signature.data = ReadType(in);
    step.signature.compute = ReadType(in);
    step.inputs = ReadNumbers(in, tensors.size(), -1);
    step.outputs = ReadNumbers(in, tensors.size(), -1);
    for (const int output : step.outputs)
      Require(output < 0 || tensors[static_cast<size_t>(output)].offset >= 0, "tensor ", output,
              " is written, but is a constant");
    form.check(step.op, {Operands(step.inputs, tensors), Operands(step.outputs, tensors),
                         step.signature.data});
    RequireWholeOrApart(step, tensors);
    return step;
  });
}

WeightRows ReadRows(const TensorDesc& desc, ByteReader& in) {
  WeightRows rows;
  rows.channels = in.Number<int64_t>();
  rows.are_columns = in.Number<bool>();
  Require(desc.dtype == DType::kFloat && desc.layout == Layout::kPlain, "weights of 8 bits are ",
          Name(desc.dtype), ", ", Name(desc.layout), "; they must be plain floats");
  Require(rows.channels >= 1 && desc.count() % rows.channels == 0, "weights of ", desc.shape,
          " are of ", rows.channels, " output channels");
  return rows;
}

// Number of bytes that a constant takes in the file.
size_t StoredBytes(const ProgramFile::Tensor& tensor) {
  return tensor.rows ? NumberBytes(*tensor.rows, tensor.desc.count()) : tensor.desc.bytes();
}

ProgramFile::Tensor ReadTensor(int64_t activation_bytes, ByteReader& in) {
  ProgramFile::Tensor tensor;
  tensor.name = in.Text();
  tensor.desc = ReadDesc(in);
  tensor.offset = in.Number<int64_t>();
  if (tensor.offset == kConstantRows) {
    tensor.rows = ReadRows(tensor.desc, in);
    tensor.offset = kConstant;
  }
  const auto bytes = static_cast<int64_t>(tensor.desc.bytes());
  Require(tensor.offset == kConstant ||
              (tensor.offset >= 0 && tensor.offset % static_cast<int64_t>(kCacheLine) == 0 &&
               tensor.offset <= activation_bytes - bytes),
          "tensor '", tensor.name, "' of ", bytes, " bytes lies at ", tensor.offset, " of ",
          activation_bytes);
  return tensor;
}

std::shared_ptr<void> AllocateLines(size_t bytes) {
  void* const memory = std::aligned_alloc(kCacheLine, WholeLines(std::max<size_t>(bytes, 1)));
  if (memory == nullptr) throw DeviceError(StrCat("out of memory asking for ", bytes, " bytes"));
  return {memory, std::free};
}

void ReadConstants(ByteReader& in, std::vector<ProgramFile::Tensor>* tensors) {
  for (ProgramFile::Tensor& tensor : *tensors) {
    if (tensor.offset >= 0) continue;
    const size_t bytes = StoredBytes(tensor);
    const std::span<const char> stored = in.Take(WholeLines(bytes));
    const std::shared_ptr<void> memory = AllocateLines(bytes);
    std::memcpy(memory.get(), stored.data(), bytes);
    tensor.constant = memory;
  }
  Require(in.left() == 0, in.left(), " bytes follow the last weights");
}

ProgramFile ReadHead(ByteReader in) {
  ProgramFile program;
  program.net = in.Text();
  program.made_by = in.Text();
  program.activation_bytes = in.Number<int64_t>();
  Require(program.activation_bytes >= 0, "activations take ", program.activation_bytes, " bytes");
  // 18: the smallest entry of a tensor, with an empty name, types, axes and an offset.
  const size_t tensors = in.Count(18);
  for (size_t i = 0; i < tensors; ++i)
    program.tensors.push_back(ReadTensor(program.activation_bytes, in));
  int64_t most = 0;
  for (const ProgramFile::Tensor& tensor : program.tensors)
    most += static_cast<int64_t>(WholeLines(tensor.desc.bytes()));
  Require(program.activation_bytes <= most, "activations take ", program.activation_bytes,
          " bytes, but all tensors only ", most);
  program.inputs = ReadNumbers(in, tensors, 0);
  program.outputs = ReadNumbers(in, tensors, 0);
  for (const int input : program.inputs)
    Require(program.tensors[static_cast<size_t>(input)].offset >= 0, "input ", input,
            " is a constant");
  const size_t steps = in.Count(16);
  for (size_t i = 0; i < steps; ++i) program.steps.push_back(ReadStep(program.tensors, in));
  Require(in.left() == 0, in.left(), " bytes follow the last step");
  return program;
}

}  // namespace

bool CanHold(const Op& op) {
  return OpForms::Get().Find(op.name()) != nullptr;
}

std::string WriteProgram(const ProgramFile& program) {
  ByteWriter head;
  head.Text(program.net);
  head.Text(program.made_by);
  head.Number(program.activation_bytes);
  head.Number(static_cast<uint32_t>(program.tensors.size()));
  for (const ProgramFile::Tensor& tensor : program.tensors) {
    head.Text(tensor.name);
    WriteDesc(tensor.desc, head);
    head.Number(tensor.rows ? kConstantRows : tensor.offset);
    if (!tensor.rows) continue;
    head.Number(tensor.rows->channels);
    head.Number(static_cast<uint8_t>(tensor.rows->are_columns));
  }
  WriteNumbers(program.inputs, head);
  WriteNumbers(program.outputs, head);
  head.Number(static_cast<uint32_t>(program.steps.size()));
  for (const ProgramFile::Step& step : program.steps) WriteStep(step, program.tensors, head);

  ByteWriter body;
  body.Number(static_cast<uint64_t>(head.bytes().size()));
  body.Append(head.bytes().data(), head.bytes().size());
  for (const ProgramFile::Tensor& tensor : program.tensors) {
    if (tensor.offset >= 0) continue;
    const size_t bytes = StoredBytes(tensor);
    body.Append(tensor.constant.get(), bytes);
    body.Append(std::string(WholeLines(bytes) - bytes, '\0').data(), WholeLines(bytes) - bytes);
  }
  const bool has_numbers = std::ranges::any_of(
      program.tensors, [](const auto& tensor) { return tensor.rows || Is8Bit(tensor.desc.dtype); });
  return SealProgram(body.bytes(), has_numbers ? kVersion : kOldestVersion);
}

std::string SealProgram(std::string_view body) {
  return SealProgram(body, kVersion);
}

std::string SealProgram(std::string_view body, uint32_t version) {
  ByteWriter file;
  file.Append(kProgramMagic.data(), kProgramMagic.size());
  file.Number(version);
  file.Number(Checksum(body));
  file.Append(body.data(), body.size());
  return std::move(file).Take();
}

ProgramFile ReadProgram(std::span<const char> bytes) {
  Require(bytes.size() >= kPreambleBytes &&
              std::equal(kProgramMagic.begin(), kProgramMagic.end(), bytes.begin()),
          "it is not a compiled program (caffe compile writes them)");
  ByteReader in(bytes.subspan(kProgramMagic.size()));
  const auto version = in.Number<uint32_t>();
  Require(version >= kOldestVersion && version <= kVersion, "it is of format ", version,
          ", but this library reads formats ", kOldestVersion, " to ", kVersion,
          "; compile the net again");
  const auto checksum = in.Number<uint64_t>();
  const std::span<const char> body = bytes.subspan(bytes.size() - in.left());
  Require(Checksum(body) == checksum, "it is damaged: its checksum is not that of its bytes");
  const auto head_bytes = in.Number<uint64_t>();
  Require(head_bytes <= in.left(), "its head of ", head_bytes, " bytes is longer than the file");
  ProgramFile program = ReadHead(ByteReader(in.Take(static_cast<size_t>(head_bytes))));
  ReadConstants(in, &program.tensors);
  return program;
}

}  // namespace caffe::runtime
