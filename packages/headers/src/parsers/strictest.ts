/** The least of the numbers that could be read; `undefined` where none could. */
export function least(numbers: readonly (number | undefined)[]): number | undefined {
  const read = numbers.filter((number) => number !== undefined)
  return read.length === 0 ? undefined : Math.min(...read)
}

/** The greatest of the numbers that could be read; `undefined` where none could. */
export function latest(numbers: readonly (number | undefined)[]): number | undefined {
  const read = numbers.filter((number) => number !== undefined)
  return read.length === 0 ? undefined : Math.max(...read)
}
