import { bundleSuite } from './bundle-suite.ts'

bundleSuite('the page of @sluice/admin', {
  folder: 'packages/admin/page',
  asTheyAre: ['index.html'],
  names: ['page.js', 'page.css'],
  maxKilobytes: 36,
  options: { entryPoints: { page: 'packages/admin/src/page/main.tsx' }, format: 'esm' },
})
