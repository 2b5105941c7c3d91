#include "caffe/io/binary_format.hpp"

#include <fcntl.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdint>
#include <fstream>

#include "caffe/decode_limit.hpp"
#include "caffe/error.hpp"
#include "caffe/io/atomic_file.hpp"
#include "caffe/io/message_size.hpp"
#include "caffe/io/open_error.hpp"

namespace caffe {
namespace {

// Guesses the real kind of the file from its first bytes; empty if unknown.
std::string OtherKind(const std::string& head) {
  if (head.starts_with("\x89HDF\r\n\x1a\n")) {
    return "an HDF5 file; let its name end in .h5 to have it read as one";
  }
  const auto is_text = [](unsigned char letter) {
    return std::isprint(letter) || std::isspace(letter);
  };
  if (std::all_of(head.begin(), head.end(), is_text)) {
    return "a text file; give the binary file (.caffemodel, .solverstate, .binaryproto)";
  }
  return "";
}

// Uses a separate stream, which skips values without reading them.
void CheckDecodedMessage(const std::string& path, uint64_t bytes,
                         const google::protobuf::Message& message) {
  google::protobuf::io::FileInputStream stream(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  stream.SetCloseOnDelete(true);
  google::protobuf::io::CodedInputStream coded(&stream);
  coded.SetTotalBytesLimit(static_cast<int>(kMostBinaryProtoBytes));
  CheckDecodedBytes(ParsedBytes(&coded, *message.GetDescriptor()), bytes, path, ": this ",
                    message.GetDescriptor()->name());
}

}  // namespace

void ReadBinaryProto(const std::string& path, google::protobuf::Message* message) {
  RequireNoPipe(path);
  errno = 0;
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) throw OpenError(path, errno);
  const auto end = file.tellg();
  if (end < 0 || static_cast<uint64_t>(end) > static_cast<uint64_t>(INT64_MAX) - 1) {
    throw IoError(path + ": cannot read: not a plain file");
  }
  const uint64_t bytes = static_cast<uint64_t>(end);
  const std::string& type = message->GetDescriptor()->name();
  if (bytes == 0) throw IoError(StrCat(path, ": not a ", type, ": the file is empty (0 bytes)"));
  if (bytes > kMostBinaryProtoBytes) {
    throw IoError(StrCat(path, ": has ", bytes, " bytes, a protobuf message at most ",
                         kMostBinaryProtoBytes, "; store it as HDF5 (snapshot_format: HDF5)"));
  }
  std::string head(std::min<uint64_t>(bytes, 512), '\0');
  file.seekg(0);
  file.read(head.data(), static_cast<std::streamsize>(head.size()));
  if (!file) throw IoError(StrCat(path, ": cannot read: ", ErrnoText(errno)));
  CheckDecodedMessage(path, bytes, *message);
  file.seekg(0);

  google::protobuf::io::IstreamInputStream stream(&file, 1 << 20);
  google::protobuf::io::CodedInputStream coded(&stream);
  coded.SetTotalBytesLimit(static_cast<int>(kMostBinaryProtoBytes));
  message->Clear();
  const bool parsed = message->MergePartialFromCodedStream(&coded) && coded.ConsumedEntireMessage();
  if (parsed && message->IsInitialized()) return;

  if (file.bad()) throw IoError(StrCat(path, ": cannot read: ", ErrnoText(errno)));
  if (const std::string kind = OtherKind(head); !kind.empty()) {
    throw IoError(StrCat(path, ": not a ", type, " but ", kind));
  }
  if (parsed) {
    throw IoError(
        StrCat(path, ": not a complete ", type, ": lacks ", message->InitializationErrorString()));
  }
  throw IoError(StrCat(path, ": not a ", type, " or truncated (parse error, file has ", bytes,
                       " bytes); copy or download it again"));
}

void WriteBinaryProto(const google::protobuf::Message& message, AtomicFile* file) {
  const uint64_t bytes = message.ByteSizeLong();
  Require(bytes <= kMostBinaryProtoBytes, file->path(), ": a ", message.GetDescriptor()->name(),
          " of ", bytes, " bytes exceeds protobuf's limit of ", kMostBinaryProtoBytes,
          "; use HDF5 (snapshot_format: HDF5)");
  google::protobuf::io::FileOutputStream stream(file->descriptor(), 1 << 20);
  if (message.SerializePartialToZeroCopyStream(&stream) && stream.Flush()) return;
  ThrowWriteError(file->path(), stream.GetErrno() != 0 ? stream.GetErrno() : EIO, bytes);
}

void WriteBinaryProto(const std::string& path, const google::protobuf::Message& message) {
  AtomicFile file(path);
  WriteBinaryProto(message, &file);
  file.Commit();
}

}  // namespace caffe
