// Scaled dot-product attention as a graph of cuDNN's elementary operations: what the fused attention engines of cuDNN
// 9.14 recognise.
#pragma once

#include <vector>

#include "backends/cuda/vendor/cudnn/descriptor.h"

namespace assay::cuda::vendor {

// Ids of what is given at each run.
enum SdpaId : int64_t { kQ = 1, kK, kV, kO, kScale, kLowest, kKeys, kQueries, kFirstVirtual };

// Builds o = softmax(mask(q k^T * scale)) v; the descriptors must live as long as a plan is made of the graph.
class SdpaGraph {
 public:
  SdpaGraph(const AttentionShape& shape, Failure& failure);
  // Of all operations, finalized; usable while this lives.
  Descriptor finish(cudnnHandle_t handle);

 private:
  using Dims = std::vector<int64_t>;
  struct Operands {
    cudnnBackendDescriptor_t x = nullptr;
    cudnnBackendDescriptor_t b = nullptr;  // null: none
    cudnnBackendDescriptor_t t = nullptr;  // a condition; null: none
  };

  cudnnBackendDescriptor_t tensor(int64_t id, const Dims& dims, const Dims& strides, cudnnDataType_t type);
  cudnnBackendDescriptor_t value(int64_t id, cudnnDataType_t type);        // one number, given from the host
  cudnnBackendDescriptor_t inner(const Dims& dims, cudnnDataType_t type);  // lives inside a kernel alone
  cudnnBackendDescriptor_t make(Descriptor tensor, const Dims& dims, const Dims& strides, cudnnDataType_t type);
  cudnnBackendDescriptor_t pointwise(cudnnPointwiseMode_t mode, const Operands& operands, cudnnDataType_t type,
                                     const Dims& dims);
  cudnnBackendDescriptor_t index(int64_t axis, cudnnBackendDescriptor_t of);
  cudnnBackendDescriptor_t reduce(cudnnReduceTensorOp_t op, cudnnBackendDescriptor_t x);
  void matmul(cudnnBackendDescriptor_t a, cudnnBackendDescriptor_t b, cudnnBackendDescriptor_t c);
  cudnnBackendDescriptor_t masked(cudnnBackendDescriptor_t scores);
  cudnnBackendDescriptor_t softmax(cudnnBackendDescriptor_t scores);

  AttentionShape shape_;
  Dims all_;   // of the scores
  Dims rows_;  // of one number a query
  Failure& failure_;
  int64_t next_id_ = kFirstVirtual;
  std::vector<Descriptor> kept_;
  std::vector<cudnnBackendDescriptor_t> operations_;
};

}  // namespace assay::cuda::vendor
