import { bundleSuite } from '../../admin/page/bundle-suite.ts'

const entryPoints = ['main.tsx', 'report.css'].map((file) => {
  return { in: `packages/cli/src/page/${file}`, out: 'report' }
})

bundleSuite('the page of a report', {
  folder: 'packages/cli/page',
  names: ['report.js', 'report.css'],
  maxKilobytes: 40,
  options: { entryPoints, format: 'iife' },
})
