/* The table of the ABI that is built with. */
typedef struct table {
  assay_engine_table first;
} table;
#define MINOR ASSAY_ABI_MINOR
