# Finds the CUDA toolkit or leaves the CUDA parts out; the one place that decides (ASSAY_HAVE_CUDA) and says so.
# Interface target assay_cuda_settings: flags of .cu files and the static CUDA runtime, so that a machine without
# a driver, or without CUDA at all, can load what is built.
set(ASSAY_HAVE_CUDA OFF)
if(NOT ASSAY_CUDA STREQUAL OFF)
  find_package(CUDAToolkit 12.4 QUIET)
  if(CUDAToolkit_NVCC_EXECUTABLE AND TARGET CUDA::cudart_static)
    set(ASSAY_HAVE_CUDA ON)
  elseif(ASSAY_CUDA STREQUAL ON)
    message(FATAL_ERROR "assay: ASSAY_CUDA is ON, but no CUDA toolkit of version 12.4 or newer with nvcc and "
      "libcudart_static.a was found; install one, set CUDAToolkit_ROOT, or use ASSAY_CUDA=AUTO")
  endif()
endif()
if(NOT ASSAY_HAVE_CUDA)
  message(STATUS "assay: CUDA parts left out (ASSAY_CUDA=${ASSAY_CUDA}, no toolkit of version 12.4 or newer used)")
  return()
endif()
message(STATUS "assay: CUDA parts built with nvcc ${CUDAToolkit_VERSION}: ${CUDAToolkit_NVCC_EXECUTABLE}")
set(CMAKE_CUDA_COMPILER ${CUDAToolkit_NVCC_EXECUTABLE})
set(CMAKE_CUDA_HOST_COMPILER ${CMAKE_CXX_COMPILER})
set(CMAKE_CUDA_ARCHITECTURES 90)  # machine code of compute capability 9.0, and PTX for what comes after it
if(ASSAY_CCACHE AND NOT CMAKE_CUDA_COMPILER_LAUNCHER)
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${ASSAY_CCACHE})
endif()
enable_language(CUDA)
set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)  # CMake 3.25 does not know it of nvcc 13
set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
add_library(assay_cuda_settings INTERFACE)
# -fmad=false: a fused multiply-add stands only where it is written. Relaxed constexpr: the arithmetic's constexpr
# templates (backends/reference/arithmetic) run on the device too.
set(flags --expt-relaxed-constexpr -fmad=false -Xcompiler=-Wall,-Wextra)
if(ASSAY_WERROR)
  list(APPEND flags -Werror=all-warnings)
endif()
target_compile_options(assay_cuda_settings INTERFACE "$<$<COMPILE_LANGUAGE:CUDA>:${flags}>")
target_link_libraries(assay_cuda_settings INTERFACE CUDA::cudart_static)
