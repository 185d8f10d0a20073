# Every target of the project is made through one of these three.

# assay_library(NAME SOURCES... [DEPS...]): static library assay_NAME with alias assay::NAME.
function(assay_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_library(assay_${name} STATIC ${ARG_SOURCES})
  add_library(assay::${name} ALIAS assay_${name})
  target_include_directories(assay_${name} PUBLIC ${assay_SOURCE_DIR})
  target_link_libraries(assay_${name} PUBLIC ${ARG_DEPS} PRIVATE assay_settings)
  if(ASSAY_FUZZ)
    target_compile_options(assay_${name} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:-fsanitize=fuzzer-no-link>")
  endif()
endfunction()

# assay_plugin(NAME SOURCES... [DEPS...]): shared object NAME.so that exports assay_plugin_query alone.
include(AssayPlugin)
function(assay_plugin name)
  assay_plugin_target(${name} ${ARGN})
  target_include_directories(${name} PRIVATE ${assay_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE assay_settings)
  set_target_properties(${name} PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${ASSAY_PLUGIN_DIR})
  set_property(GLOBAL APPEND PROPERTY ASSAY_PLUGINS ${name})
  install(TARGETS ${name} LIBRARY DESTINATION lib/assay/plugins)
endfunction()

# assay_test(NAME SOURCES... [DEPS...] [LABELS...] [PLUGINS...] [LONG]): GoogleTest program; each TEST is a CTest test
# under the name that --gtest_filter takes. PLUGINS names plugin targets that must be built before the program runs.
# LONG: some of its tests take over half a minute of two cores, so they are started before the others.
function(assay_test name)
  cmake_parse_arguments(ARG "LONG" "" "SOURCES;DEPS;LABELS;PLUGINS" ${ARGN})
  if(NOT ASSAY_TESTS OR (ASSAY_TESTS STREQUAL "UNIT" AND ARG_LABELS MATCHES "slow|system"))
    return()
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_include_directories(${name} PRIVATE ${assay_SOURCE_DIR})
  target_compile_definitions(${name} PRIVATE
    ASSAY_SOURCE_DIR="${assay_SOURCE_DIR}" ASSAY_BINARY_DIR="${assay_BINARY_DIR}")
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} GTest::gmock_main assay_settings)
  if(ARG_PLUGINS)
    add_dependencies(${name} ${ARG_PLUGINS})
  endif()
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${assay_BINARY_DIR}/tests)
  if("gpu" IN_LIST ARG_LABELS)
    set_property(GLOBAL APPEND PROPERTY ASSAY_GPU_TESTS ${name})
    # A false alarm of g++ 12 at -O3: the destructor of a vector of floats, in a test of the decode kernels.
    target_compile_options(${name} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:-Wno-free-nonheap-object>")
  else()
    # Half of what is compiled is tests: their own code is not optimised, what they test is.
    target_compile_options(${name} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:-O0>")
  endif()
  # The limits find what hangs, on a machine that is many times slower or busier than one of two idle cores, too.
  set(limits TIMEOUT 900)
  if("slow" IN_LIST ARG_LABELS)
    set(limits TIMEOUT 3600 COST 1000)  # started first, so that nothing waits for them alone at the end
  else()
    if(ASSAY_SANITIZE)
      set(limits TIMEOUT 2700)
    endif()
    if(ARG_LONG)
      list(APPEND limits COST 500)
    endif()
  endif()
  # Values of parameters are no part of a name: of most structs they are bytes with addresses, new in every run.
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60 NO_PRETTY_VALUES TEST_PREFIX "${name}."
    PROPERTIES ${limits} LABELS "${ARG_LABELS}")
endfunction()
