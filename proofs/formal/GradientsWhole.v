(* SPDX-License-Identifier: Apache-2.0
   Copyright 2026 the sinkproof authors *)

(* The backward pass of a whole model: the embedding, from which every place of a word reads (grad.embedding), and the
   layers, each of which adds to the stream (grad.chain). *)

From Sinkproof Require Import Sums Gradients GradientsStages.
From Coq Require Import Reals List Arith Lia Lra.
From Coquelicot Require Import Coquelicot.
Import ListNotations.
Open Scope R_scope.

(* ---- the embedding ---- *)

(* Place n of N has the word t n of V, whose row of the embedding E it reads; the loss has dx n there. A tied embedding
   also makes the logits of x n, which moves too; the loss has dz n v there. *)
(*> grad.embedding *)
Theorem grad_embedding (N V H : nat) (t : nat -> nat) (E E' : nat -> vec) (dx x x' : nat -> vec) (dz : mat) :
  (forall n, (n < N)%nat -> (t n < V)%nat) ->
  let dE v := (∑ n ∈ filter (fun n => t n =? v)%nat (seq 0 N), dx n)%V in
  let tied v := (dE v + ∑ n < N, dz n v *: x n)%V in
  let dx_logits n := (∑ v < V, dz n v *: E v)%V in
  is_derive (fun s => ∑ n < N, dx n ⋅[H] (E (t n) + s *: E' (t n))%V) 0 (∑ v < V, dE v ⋅[H] E' v) /\
  is_derive (fun s => (∑ n < N, dx n ⋅[H] (E (t n) + s *: E' (t n))%V) +
      ∑ n < N, ∑ v < V, dz n v * ((E v + s *: E' v)%V ⋅[H] (x n + s *: x' n)%V)) 0
    ((∑ v < V, tied v ⋅[H] E' v) + ∑ n < N, dx_logits n ⋅[H] x' n).
Proof.
  intros Ht dE tied dx_logits.
  assert (A : is_derive (fun s => ∑ n < N, dx n ⋅[H] (E (t n) + s *: E' (t n))%V) 0 (∑ v < V, dE v ⋅[H] E' v)).
  { unfold dE. rewrite <- (grad_group H N V t dx E' Ht).
    apply (is_derive_Sum (seq 0 N) (fun n s => _)). intros n _. unfold vdot.
    apply (is_derive_Sum (seq 0 H) (fun c s => dx n c * (E (t n) c + s * E' (t n) c))). intros c _.
    eapply derive_is; [auto_derive; [exact I | reflexivity] | ring]. }
  split; [exact A|].
  pose proof (grad_linear N V H E E' x x' (fun _ => 0) (fun _ => 0) dz) as B. cbv zeta in B.
  eapply derive_is; [apply (is_derive_plus (fun s => ∑ n < N, dx n ⋅[H] (E (t n) + s *: E' (t n))%V)); [exact A|]|].
  - eapply is_derive_ext; [|exact B]. intros s. real. apply Sum_ext. intros n. apply Sum_ext. intros v.
    unfold vdot, vadd, vscal. ring.
  - change plus with Rplus. cbv beta.
    rewrite (Sum_is_zero (seq 0 V) (fun r => (∑ t < N, dz t r) * 0)) by (intros; ring).
    unfold tied, dx_logits, vdot, vadd, vscal, vsum.
    rewrite (Sum_ext (seq 0 V) (fun v => ∑ k < H, (dE v k + ∑ j < N, dz j v * x j k) * E' v k)
      (fun v => (∑ k < H, dE v k * E' v k) + ∑ k < H, (∑ j < N, dz j v * x j k) * E' v k)).
    + rewrite Sum_plus.
      rewrite (Sum_ext (seq 0 N) (fun n => ∑ k < H, (∑ j < V, dz n j * E j k) * x' n k)
        (fun n => ∑ c < H, (∑ r < V, E r c * dz n r) * x' n c)); [ring|].
      intros n. apply Sum_ext. intros c. f_equal. apply Sum_ext. intros v. ring.
    + intros v. rewrite <- Sum_plus. apply Sum_ext. intros c. ring.
Qed.
(*< grad.embedding *)

(* ---- the layers ---- *)

(*> grad.chain *)
(* A curve c through x in n coordinates, whose velocity there is x'. *)
Definition passes (n : nat) (c : R -> vec) (x x' : vec) : Prop :=
  c 0 = x /\ forall i, (i < n)%nat -> is_derive (fun t => c t i) 0 (x' i).

(* f takes curves through x to curves, and b is the transpose of its derivative there: the gradient of the results in,
   that of the inputs out. *)
Definition goes_back (n m : nat) (f : vec -> vec) (x : vec) (b : vec -> vec) : Prop :=
  forall c x', passes n c x x' -> exists y', passes m (fun t => f (c t)) (f x) y' /\
    forall dy, dy ⋅[m] y' = b dy ⋅[n] x'.

(* Layers are pairs: what one adds to the stream, and how that goes back at a stream x. *)
Fixpoint stream (layers : list ((vec -> vec) * (vec -> vec -> vec))) (x : vec) : vec :=
  match layers with [] => x | (f, _) :: rest => stream rest (x + f x)%V end.
Fixpoint stream_back (layers : list ((vec -> vec) * (vec -> vec -> vec))) (x dy : vec) : vec :=
  match layers with [] => dy | (f, b) :: rest => let dx := stream_back rest (x + f x)%V dy in (dx + b x dx)%V end.
(*< grad.chain *)

Lemma back_compose n m k f g x b b2 : goes_back n m f x b -> goes_back m k g (f x) b2 ->
  goes_back n k (fun x => g (f x)) x (fun dz => b (b2 dz)).
Proof.
  intros F G c x' Hc. destruct (F c x' Hc) as (y' & Hy & Ey). destruct (G _ y' Hy) as (z' & Hz & Ez).
  exists z'. split; [exact Hz|]. intros dz. rewrite Ez. apply Ey.
Qed.

Lemma back_residual n f x b : goes_back n n f x b ->
  goes_back n n (fun x => (x + f x)%V) x (fun dy => (dy + b dy)%V).
Proof.
  intros F c x' Hc. destruct (F c x' Hc) as (y' & Hy & Ey). exists (x' + y')%V. split.
  - split; [rewrite (proj1 Hc); reflexivity|]. intros i Hi. unfold vadd.
    apply (is_derive_plus (fun t => c t i) (fun t => f (c t) i)); [apply Hc | apply Hy]; exact Hi.
  - intros dy. transitivity (dy ⋅[n] x' + dy ⋅[n] y'); [|rewrite Ey]; unfold vdot, vadd; rewrite <- Sum_plus;
      apply Sum_ext; intros; ring.
Qed.

(*> grad.chain *)
Theorem grad_chain n (layers : list ((vec -> vec) * (vec -> vec -> vec))) :
  (forall f b, In (f, b) layers -> forall x, goes_back n n f x (b x)) -> forall x,
  goes_back n n (stream layers) x (stream_back layers x) /\
  forall dy x', is_derive (fun t => dy ⋅[n] stream layers (x + t *: x')%V) 0 (stream_back layers x dy ⋅[n] x').
Proof.
  intros H x. assert (G : goes_back n n (stream layers) x (stream_back layers x)).
  { revert x. induction layers as [|(f, b) rest IH]; intros x.
    - intros c x' Hc. exists x'. split; [exact Hc | reflexivity].
    - pose proof (back_residual n f x (b x) (H f b (or_introl eq_refl) x)) as B.
      assert (R : goes_back n n (stream rest) (x + f x)%V (stream_back rest (x + f x)%V))
        by (apply IH; intros g b' I; apply H; right; exact I).
      exact (back_compose n n n _ _ x _ _ B R). }
  split; [exact G|]. intros dy x'.
  destruct (G (fun t => (x + t *: x')%V) x') as (y' & [_ Hy] & Ey).
  - split; [apply vec_eq; intros i; unfold vadd, vscal; ring|]. intros i _. unfold vadd, vscal.
    eapply derive_is; [auto_derive; [exact I | reflexivity] | ring].
  - rewrite <- Ey. unfold vdot.
    apply (is_derive_Sum (seq 0 n) (fun i t => dy i * stream layers (x + t *: x')%V i)). intros i Hi.
    apply in_seq in Hi. apply (is_derive_scal (fun t => stream layers (x + t *: x')%V i)). apply Hy. lia.
Qed.
(*< grad.chain *)
