const later = setTimeout

/** Runs the tests that a kit describes, one after the other. */
export async function runKit(describeAll) {
  const cases = []
  let where = ''
  const describe = (name, body) => {
    const outside = where
    where = `${where}${name} > `
    body()
    where = outside
  }
  const it = (name, body) => cases.push([where + name, body])
  describeAll({ describe, it })
  const failed = []
  for (const [name, body] of cases) {
    const end = new Promise((_, reject) => {
      const timer = later(() => reject(new Error('no end within 10 s')), 10_000)
      timer.unref?.()
    })
    try {
      await Promise.race([body(), end])
    } catch (error) {
      failed.push(`${name}: ${error.message}`)
    }
  }
  return { tests: cases.length, failed }
}
